#include "choice/units.h"

namespace memplan::choice {

Units::Units(const Items& items, const std::vector<Fixed>& fixed)
    : items_(items), open_(items.of_unit.size()), next_(items.bytes.size()), needs_(items.must) {
  for (Index unit = 0; unit < items.units(); ++unit) {
    std::vector<Index>& open = open_[unit];
    for (const Index i : items.of_unit[unit]) {
      if (fixed[i] == Fixed::kOpen) open.push_back(i);
      if (fixed[i] == Fixed::kIn) needs_[unit] = 0;
    }
    if (needs_[unit] != 0 && open.empty()) is_impossible_ = true;
    for (const Index i : open) {
      const auto next =
          std::lower_bound(open.begin(), open.end(), items.end[i],
                           [&](Index other, Index end) { return items.start[other] < end; });
      next_[i] = static_cast<std::size_t>(next - open.begin());
    }
  }
}

std::int64_t Units::evaluate_with(Index item, const std::vector<std::int64_t>& profit) const {
  const auto beside = [&](Index other) { return !items_.meet(item, other); };
  return profit[item] + look_ahead(items_.unit[item], profit, false, beside)[0];
}

std::int64_t Units::evaluate_without(Index item, const std::vector<std::int64_t>& profit) const {
  const Index unit = items_.unit[item];
  return look_ahead(unit, profit, needs(unit), [&](Index other) { return other != item; })[0];
}

Decided Units::decide(const std::vector<std::int64_t>& profit) const {
  Decided found{std::vector<std::int64_t>(profit.size(), 0),
                std::vector<std::int64_t>(profit.size(), 0)};
  for (Index unit = 0; unit < count(); ++unit) {
    const std::vector<Index>& open = open_[unit];
    const auto ahead = look_ahead(unit, profit, needs(unit), [](Index) { return true; });
    for (std::size_t at = 0; at < open.size(); ++at) {
      const Index i = open[at];
      const std::int64_t later = needs(unit) ? 0 : ahead[next_[i]];
      found.taken[i] = profit[i] + later - ahead[at];
      found.skipped[i] = std::max(kNever, ahead[at + 1] - ahead[at]);
    }
  }
  return found;
}

}  // namespace memplan::choice
