// What the open items of each unit are worth at most, at some prices.
//
// Items of a unit are never live at the same time. From the last item to the first, the best that
// is left from item i on is the better of two: what is left without it, and its profit with what is
// left of the items that begin after its end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "choice/items.h"

namespace memplan::choice {

// No sum of profits is as low: the value of a unit of which an item must be chosen and none can be.
inline constexpr std::int64_t kNever = -(std::int64_t{1} << 61);

// What a decision about each open item costs beyond the best for its unit, if none that is live has
// been chosen; each is 0 or less.
struct Decided {
  std::vector<std::int64_t> taken;
  std::vector<std::int64_t> skipped;
};

class Units {
 public:
  Units(const Items& items, const std::vector<Fixed>& fixed);

  // The sum of profits of the best open items of a unit, which are written to `best`.
  template <typename Profit>
  Profit evaluate(Index unit, const std::vector<Profit>& profit, std::vector<Index>& best) const {
    const std::vector<Index>& open = open_[unit];
    best.clear();
    if (open.size() == 1 && (profit[open[0]] > 0 || needs_[unit] != 0)) best.push_back(open[0]);
    if (open.size() == 1) return best.empty() ? 0 : profit[open[0]];
    const auto ahead = look_ahead(unit, profit, needs_[unit] != 0, [](Index) { return true; });
    for (std::size_t at = 0; at < open.size();) {
      if (ahead[at] == ahead[at + 1]) {
        ++at;
        continue;
      }
      best.push_back(open[at]);
      at = next_[open[at]];
    }
    return ahead[0];
  }

  // The same if an open item is chosen, or if it is not.
  std::int64_t evaluate_with(Index item, const std::vector<std::int64_t>& profit) const;
  std::int64_t evaluate_without(Index item, const std::vector<std::int64_t>& profit) const;

  Decided decide(const std::vector<std::int64_t>& profit) const;

  // Whether an item of the unit must be chosen, and none is so far.
  bool needs(Index unit) const { return needs_[unit] != 0; }
  // Whether some unit must have an item, and cannot.
  bool is_impossible() const { return is_impossible_; }
  Index count() const { return static_cast<Index>(open_.size()); }

 private:
  // For each place in the list of open items, what those from there on are worth at most.
  template <typename Profit, typename Allowed>
  std::vector<Profit> look_ahead(Index unit, const std::vector<Profit>& profit, bool needs,
                                 const Allowed& is_allowed) const {
    const std::vector<Index>& open = open_[unit];
    std::vector<Profit> ahead(open.size() + 1, needs ? static_cast<Profit>(kNever) : 0);
    for (std::size_t at = open.size(); at-- > 0;) {
      const Index i = open[at];
      ahead[at] = ahead[at + 1];
      // All items of a unit that needs one have one lifetime: no second one can be chosen.
      const Profit later = needs ? 0 : ahead[next_[i]];
      if (is_allowed(i)) ahead[at] = std::max(ahead[at], profit[i] + later);
    }
    return ahead;
  }

  const Items& items_;
  std::vector<std::vector<Index>> open_;  // by unit: its open items by start
  std::vector<std::size_t> next_;  // by item: the place in its list of the first that begins later
  std::vector<std::uint8_t> needs_;
  bool is_impossible_ = false;
};

}  // namespace memplan::choice
