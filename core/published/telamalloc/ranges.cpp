#include "published/telamalloc/ranges.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::size_t kCheckTrailsEvery = 32;  // of trails by length, whose fixpoint is checked

}  // namespace

ValidRanges::ValidRanges(const Items& items, const Adjacency& adjacent, Stopper& stopper)
    : items_(items),
      adjacent_(adjacent),
      stopper_(stopper),
      bound_(2 * items.size.size()),
      last_change_(2 * items.size.size(), -1),
      level_(items.size.size(), -1),
      lowest_upper_(items.capacity),
      is_awake_(items.size.size(), 0) {
  decisions_.reserve(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    bound_[lower_cell(i)] = items.earliest[i];
    bound_[upper_cell(i)] = items.latest[i];
    highest_top_ = std::max(highest_top_, items.earliest[i] + items.size[i]);
    lowest_upper_ = std::min(lowest_upper_, items.latest[i]);
  }
}

bool ValidRanges::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(awake_.empty());
  std::vector<std::int32_t> last(last_change_.size(), -1);
  for (std::size_t at = 0; at < trail_.size(); ++at) {
    const auto& [cell, before, because, old] = trail_[at];
    MEMPLAN_ASSERT(because < items_.count());
    MEMPLAN_ASSERT(before == last[cell]);
    // Each change starts from a bound at least as tight as the change before it did.
    const Bytes first = cell % 2 == 0 ? items_.earliest[cell / 2] : items_.latest[cell / 2];
    const Bytes looser = before < 0 ? first : trail_[before].old;
    MEMPLAN_ASSERT(cell % 2 == 0 ? looser <= old && old <= bound_[cell]
                                 : looser >= old && old >= bound_[cell]);
    last[cell] = static_cast<std::int32_t>(at);
  }
  MEMPLAN_ASSERT(last == last_change_);
  for (std::int32_t level = 0; level < levels(); ++level) {
    const Decision& decision = decisions_[level];
    MEMPLAN_ASSERT(level_[decision.item] == level);
    MEMPLAN_ASSERT(decision.trail <= static_cast<std::int32_t>(trail_.size()));
    MEMPLAN_ASSERT(level == 0 || decisions_[level - 1].trail <= decision.trail);
    MEMPLAN_ASSERT(lower(decision.item) == upper(decision.item));
  }
  MEMPLAN_ASSERT(std::count_if(level_.begin(), level_.end(),
                               [](std::int32_t l) { return l >= 0; }) == levels());
  for (ItemIdx i = 0; i < items_.count(); ++i) {
    MEMPLAN_ASSERT(items_.earliest[i] <= lower(i) && lower(i) <= upper(i) &&
                   upper(i) <= items_.latest[i]);
    MEMPLAN_ASSERT(items_.legal_above(i, lower(i)) == lower(i));
    MEMPLAN_ASSERT(items_.legal_below(i, upper(i)) == upper(i));
    MEMPLAN_ASSERT(is_awake_[i] == 0);
    if (placed(i)) {
      MEMPLAN_ASSERT(lower(i) + items_.size[i] <= placed_top_);
    } else {
      MEMPLAN_ASSERT(lower(i) + items_.size[i] <= highest_top_ && lowest_upper_ <= upper(i));
    }
  }
  return true;
}

bool ValidRanges::is_settled() const {
  for (ItemIdx i = 0; i < items_.count(); ++i) {
    for (const ItemIdx* j = adjacent_.first(i); j != adjacent_.last(i); ++j) {
      if (lower(i) + items_.size[i] <= upper(*j)) continue;
      MEMPLAN_ASSERT(lower(i) >= lower(*j) + items_.size[*j]);  // i lies above j
      MEMPLAN_ASSERT(upper(*j) <= upper(i) - items_.size[*j]);
    }
  }
  return true;
}
bool ValidRanges::settle() {
  for (ItemIdx i = 0; i < items_.count(); ++i) wake(i);
  return infer();
}

bool ValidRanges::place(ItemIdx i, Bytes offset) {
  MEMPLAN_ASSERT(!placed(i));
  MEMPLAN_ASSERT(items_.legal_above(i, offset) == offset && awake_.empty());
  decisions_.push_back(
      {i, static_cast<std::int32_t>(trail_.size()), placed_top_, highest_top_, lowest_upper_});
  level_[i] = levels() - 1;
  // Both bounds are the decision's, also one that was there before: what follows from the place
  // is its doing.
  set(lower_cell(i), offset, kPlaced);
  set(upper_cell(i), offset, kPlaced);
  placed_top_ = std::max(placed_top_, offset + items_.size[i]);
  wake(i);
  return infer();
}

void ValidRanges::take_back(std::int32_t level) {
  MEMPLAN_ASSERT(level >= 0 && level < levels());
  const Decision before = decisions_[level];
  for (std::int32_t l = level; l < levels(); ++l) level_[decisions_[l].item] = -1;
  decisions_.resize(static_cast<std::size_t>(level));
  placed_top_ = before.placed_top;
  highest_top_ = before.highest_top;
  lowest_upper_ = before.lowest_upper;
  for (; trail_.size() > static_cast<std::size_t>(before.trail); trail_.pop_back()) {
    const Change& change = trail_.back();
    MEMPLAN_ASSERT(last_change_[change.cell] == static_cast<std::int32_t>(trail_.size()) - 1);
    bound_[change.cell] = change.old;
    last_change_[change.cell] = change.before;
  }
}

ItemIdx ValidRanges::highest_below(ItemIdx i) const {
  ItemIdx highest = kNoItem;
  Bytes top = 0;
  for (const ItemIdx* j = adjacent_.first(i); j != adjacent_.last(i); ++j) {
    if (!placed(*j) || lower(*j) + items_.size[*j] <= top) continue;
    highest = *j;
    top = lower(*j) + items_.size[*j];
  }
  return highest;
}

bool ValidRanges::infer() {
  bool holds = true;
  std::size_t head = 0;
  for (; holds && head < awake_.size(); ++head) {
    const ItemIdx i = awake_[head];
    is_awake_[i] = 0;
    if (nothing_in_reach(i)) continue;
    holds = revise_all(i);
    if (holds && stopper_.expired()) {
      dead_end_ = {};
      holds = false;
    }
  }
  for (; head < awake_.size(); ++head) is_awake_[awake_[head]] = 0;
  MEMPLAN_ASSERT(!holds || trail_.size() % kCheckTrailsEvery != 0 || is_settled());
  awake_.clear();
  return holds;
}

// Whether i lies above all that is placed, and neither it nor any other unplaced item is so high,
// or so low, that one order with it is left.
bool ValidRanges::nothing_in_reach(ItemIdx i) const {
  return !placed(i) && lower(i) >= placed_top_ && lower(i) + items_.size[i] <= lowest_upper_ &&
         highest_top_ <= upper(i);
}

bool ValidRanges::revise_all(ItemIdx i) {
  for (const ItemIdx* j = adjacent_.first(i); j != adjacent_.last(i); ++j) {
    if (!revise(i, *j)) return false;
  }
  return true;
}

// Offsets stay within bounds that are legal themselves, so that rounding to the next legal one
// never leaves them: a pair fails only where both orders do.
bool ValidRanges::revise(ItemIdx i, ItemIdx j) {
  const bool i_above = lower(i) + items_.size[i] > upper(j);
  const bool j_above = lower(j) + items_.size[j] > upper(i);
  if (!i_above && !j_above) return true;
  if (i_above && j_above) {
    dead_end_ = {i, j};
    return false;
  }
  MEMPLAN_ASSERT(i != j);
  const ItemIdx above = i_above ? i : j, below = i_above ? j : i;
  raise(above, lower(below) + items_.size[below], below);
  sink(below, upper(above) - items_.size[below], above);
  return true;
}

void ValidRanges::raise(ItemIdx i, Bytes bound, ItemIdx because) {
  if (bound <= lower(i)) return;
  set(lower_cell(i), items_.legal_above(i, bound), because);
  highest_top_ = std::max(highest_top_, lower(i) + items_.size[i]);
  wake(i);
}

void ValidRanges::sink(ItemIdx i, Bytes bound, ItemIdx because) {
  if (bound >= upper(i)) return;
  set(upper_cell(i), items_.legal_below(i, bound), because);
  lowest_upper_ = std::min(lowest_upper_, upper(i));
  wake(i);
}

void ValidRanges::set(std::int32_t cell, Bytes value, ItemIdx because) {
  trail_.push_back({cell, last_change_[cell], because, bound_[cell]});
  last_change_[cell] = static_cast<std::int32_t>(trail_.size()) - 1;
  bound_[cell] = value;
}

void ValidRanges::wake(ItemIdx i) {
  if (is_awake_[i]) return;
  is_awake_[i] = 1;
  awake_.push_back(i);
}

}  // namespace memplan
