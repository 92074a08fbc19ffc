#include "published/telamalloc/candidates.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::size_t kFewestCandidates = 2;
constexpr std::size_t kPublishedBound = 10;  // the paper has a bound, and no number
constexpr Unplaced::Order kUnplacedOrders[] = {Unplaced::kLongest, Unplaced::kLargest,
                                               Unplaced::kLargestArea};

bool holds(const std::vector<ItemIdx>& list, ItemIdx i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

}  // namespace

Candidates::Candidates(const TelamallocOptions& options, const Unplaced& unplaced,
                       const ValidRanges& ranges)
    : select_(parse(options.select)),
      published_(options.published),
      fewest_(!options.bounded    ? std::numeric_limits<std::size_t>::max()
              : options.published ? kPublishedBound
                                  : kFewestCandidates),
      most_(fewest_),
      unplaced_(unplaced),
      ranges_(ranges),
      is_listed_(static_cast<std::size_t>(unplaced.count()), 0) {}

Candidates::Select Candidates::parse(const std::string& name) {
  if (name == "tela") return Select::kTela;
  if (name == "size") return Select::kSize;
  if (name == "area") return Select::kArea;
  if (name == "lifetime") return Select::kLifetime;
  if (name == "lowest") return Select::kLowest;
  fail("there is no selection '" + name + "': choose tela, size, area, lifetime or lowest.");
}

void Candidates::open(DecisionPoint* point, std::int32_t home) const {
  point->candidates.clear();
  point->tried = 0;
  point->home = home >= 0 && unplaced_.left(home) > 0 ? home : -1;
  point->phase = -1;
  point->home_listed = false;
  point->all = false;
}

ItemIdx Candidates::next(DecisionPoint* point) {
  if (one_heuristic()) {
    // Candidates are listed one at a time, since lists of all unplaced items would take space in
    // the square of the path.
    const ItemIdx last = point->candidates.empty() ? kNoItem : point->candidates.front();
    const ItemIdx i = only_after(last);
    point->candidates.assign(1, i == kNoItem ? last : i);
    return i;
  }
  while (point->tried == point->candidates.size()) {
    if (full(*point) || !list_next_phase(point)) return kNoItem;
  }
  MEMPLAN_ASSERT(point->tried < point->candidates.size());
  return point->candidates[point->tried++];
}

// Returns false if there is none.
bool Candidates::list_next_phase(DecisionPoint* point) {
  const std::int32_t phase = next_phase(point);
  if (phase < 0) return false;
  for (const Unplaced::Order order : kUnplacedOrders) {
    const ItemIdx i = unplaced_.first(order, phase);
    if (!full(*point) && !holds(point->candidates, i)) {
      point->candidates.push_back(i);
    }
  }
  return true;
}

// The home phase comes first, then the others in their order.
std::int32_t Candidates::next_phase(DecisionPoint* point) const {
  if (point->home >= 0 && !point->home_listed) {
    point->home_listed = true;
    return point->home;
  }
  std::int32_t phase =
      point->phase < 0 ? unplaced_.first_phase() : unplaced_.phase_after(point->phase);
  if (phase >= 0 && phase == point->home) phase = unplaced_.phase_after(phase);
  if (phase < 0 || phase >= phase_end_) return -1;
  point->phase = phase;
  return phase;
}

void Candidates::hoist(const DecisionPoint& failed, DecisionPoint* above) {
  std::vector<ItemIdx>& list = above->candidates;
  const auto tried = static_cast<std::ptrdiff_t>(above->tried);
  for (std::size_t k = 0; k < above->tried; ++k) is_listed_[list[k]] = 1;
  waiting_.assign(list.begin() + tried, list.end());
  list.resize(above->tried);
  const std::vector<ItemIdx>* const sources[] = {&failed.candidates, &waiting_};
  const std::size_t counted = first_counted(*above);
  for (const auto* source : sources) {
    for (const ItemIdx i : *source) {
      if (list.size() - counted >= most_ || is_listed_[i]) continue;
      is_listed_[i] = 1;
      list.push_back(i);
    }
  }
  MEMPLAN_ASSERT(above->tried <= list.size());
  MEMPLAN_ASSERT(list.size() - counted <= std::max(most_, above->tried - counted));
  for (const ItemIdx i : list) is_listed_[i] = 0;
}

void Candidates::list_all(DecisionPoint* point) {
  point->all = true;
  for (const ItemIdx i : point->candidates) is_listed_[i] = 1;
  const std::size_t known = point->candidates.size();
  const auto list = [this, point](std::int32_t phase) {
    for (ItemIdx i = unplaced_.first(Unplaced::kLongest, phase); i != kNoItem;
         i = unplaced_.after(Unplaced::kLongest, i)) {
      if (!is_listed_[i]) point->candidates.push_back(i);
    }
  };
  if (point->home >= 0) list(point->home);
  for (std::int32_t phase = unplaced_.first_phase(); phase >= 0 && phase < phase_end_;
       phase = unplaced_.phase_after(phase)) {
    if (phase != point->home) list(phase);
  }
  for (std::size_t k = 0; k < known; ++k) is_listed_[point->candidates[k]] = 0;
}

// The unplaced one that follows in the order of the only heuristic, or the first of all.
ItemIdx Candidates::only_after(ItemIdx last) const {
  if (select_ == Select::kLowest) return lowest_after(last);
  const Unplaced::Order order = select_ == Select::kSize   ? Unplaced::kLargest
                                : select_ == Select::kArea ? Unplaced::kLargestArea
                                                           : Unplaced::kLongest;
  return last == kNoItem ? unplaced_.first(order, unplaced_.first_phase())
                         : unplaced_.after(order, last);
}

// The next candidate by lowest valid position, ties by area.
ItemIdx Candidates::lowest_after(ItemIdx last) const {
  ItemIdx best = kNoItem;
  bool passed = last == kNoItem;  // in the order of area
  for (ItemIdx i = unplaced_.first(Unplaced::kLargestArea, unplaced_.first_phase()); i != kNoItem;
       i = unplaced_.after(Unplaced::kLargestArea, i)) {
    if (i == last) {
      passed = true;
      continue;
    }
    const Bytes at = ranges_.lower(i);
    const bool later =
        last == kNoItem || at > ranges_.lower(last) || (at == ranges_.lower(last) && passed);
    if (later && (best == kNoItem || at < ranges_.lower(best))) best = i;
  }
  return best;
}

}  // namespace memplan
