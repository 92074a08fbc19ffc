#include "published/telamalloc/culprits.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan {

namespace {

bool is_lower(std::int32_t cell) { return cell % 2 == 0; }

// Whether a bound of this cell is at least as good as `wanted`.
bool satisfies(std::int32_t cell, Bytes bound, Bytes wanted) {
  return is_lower(cell) ? bound >= wanted : bound <= wanted;
}

}  // namespace

Culprits::Culprits(const Items& items, const ValidRanges& ranges)
    : items_(items),
      ranges_(ranges),
      needs_(2 * items.size.size()),
      is_involved_(items.size.size(), 0) {}

const std::vector<std::int32_t>& Culprits::of_dead_end() {
  begin();
  const auto [i, j] = ranges_.dead_end();
  speak_of(i);
  speak_of(j);
  const auto split = [this](ItemIdx above, ItemIdx below) {
    return ranges_.placed(below) ? ranges_.upper(below) - items_.size[above] + 1
                                 : ranges_.lower(above);
  };
  need_above(i, j, split(i, j));
  need_above(j, i, split(j, i));
  return walk();
}

const std::vector<std::int32_t>& Culprits::of_ceiling(ItemIdx i, Bytes bound, ItemIdx other) {
  begin();
  need(ValidRanges::upper_cell(i), bound);
  need(ValidRanges::lower_cell(other), ranges_.lower(other));
  return walk();
}

void Culprits::begin() {
  MEMPLAN_ASSERT(pending_.empty());
  end_ = static_cast<std::int32_t>(ranges_.trail().size());
  levels_.clear();
  for (const ItemIdx i : involved_) is_involved_[i] = 0;
  involved_.clear();
}

// Walks from the last change to the first, since the premises of a change are earlier.
const std::vector<std::int32_t>& Culprits::walk() {
  while (!pending_.empty()) {
    std::pop_heap(pending_.begin(), pending_.end());
    const auto [at, cell] = pending_.back();
    pending_.pop_back();
    if (needs_[cell].change != at) continue;  // a stricter need of this cell took its place
    needs_[cell].change = -1;
    MEMPLAN_ASSERT(at < end_);  // from the last change to the first
    end_ = at;
    explain(at, needs_[cell].bound);
  }
  std::sort(levels_.begin(), levels_.end());
  levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  return levels_;
}

void Culprits::explain(std::int32_t at, Bytes wanted) {
  const ValidRanges::Change& change = ranges_.trail()[at];
  const ItemIdx i = change.cell / 2, other = change.because;
  speak_of(i);
  if (other == ValidRanges::kPlaced) {
    MEMPLAN_ASSERT(ranges_.placed(i) && at >= ranges_.first_change(ranges_.level(i)));
    levels_.push_back(ranges_.level(i));
    return;
  }
  speak_of(other);
  // The slack of an order goes to one of its two items. A place cannot be weakened, so then it goes
  // to the other item; where both are bounds, to that whose value then is not on the trail here.
  const bool fixed = ranges_.placed(other) && ranges_.first_change(ranges_.level(other)) < at;
  const Bytes place = ranges_.lower(other);
  if (is_lower(change.cell)) {
    const Bytes bound = items_.legal_below(i, wanted - 1) + 1;  // the least that is rounded so far
    need(ValidRanges::lower_cell(other), bound - items_.size[other]);
    need_above(i, other, fixed ? place - items_.size[i] + 1 : change.old);
  } else {
    const Bytes bound = items_.legal_above(i, wanted + 1) - 1;
    need(ValidRanges::upper_cell(other), bound + items_.size[i]);
    need_above(other, i, fixed ? place : change.old - items_.size[other] + 1);
  }
}

// One item lies above another as it cannot lie below: lower + size of the one > upper of the other.
void Culprits::need_above(ItemIdx above, ItemIdx below, Bytes lower) {
  need(ValidRanges::lower_cell(above), lower);
  need(ValidRanges::upper_cell(below), lower + items_.size[above] - 1);
}

void Culprits::need(std::int32_t cell, Bytes bound) {
  const ItemIdx i = cell / 2;
  if (satisfies(cell, is_lower(cell) ? items_.earliest[i] : items_.latest[i], bound)) return;
  const std::vector<ValidRanges::Change>& trail = ranges_.trail();
  std::int32_t at = ranges_.last_change(cell);
  // Some change before that time made the bound so good.
  MEMPLAN_ASSERT(at >= 0 && satisfies(cell, ranges_.bound(cell), bound));
  while (at >= end_) at = trail[at].before;
  // A placement is blamed although a weaker bound may have been inferred before it. That bound
  // would only add other culprits, since a placement seldom matters for one bound alone.
  while (trail[at].because != ValidRanges::kPlaced && satisfies(cell, trail[at].old, bound)) {
    at = trail[at].before;
  }
  MEMPLAN_ASSERT(at >= 0 && at < end_ && trail[at].cell == cell);
  Need& known = needs_[cell];
  if (known.change > at) return;
  if (known.change == at) {
    known.bound = is_lower(cell) ? std::max(known.bound, bound) : std::min(known.bound, bound);
    return;
  }
  known = {at, bound};
  pending_.emplace_back(at, cell);
  std::push_heap(pending_.begin(), pending_.end());
}

void Culprits::speak_of(ItemIdx i) {
  if (is_involved_[i]) return;
  is_involved_[i] = 1;
  involved_.push_back(i);
}

}  // namespace memplan
