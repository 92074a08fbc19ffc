// The items that are still to be placed, in the orders of the heuristics.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "memplan/problem.h"
#include "published/telamalloc/phases.h"

namespace memplan {

// Doubly linked lists, one for each phase and order: an item that is placed is unlinked, and what
// was unlinked is linked again in the reverse order, each in constant time.
class Unplaced {
 public:
  enum Order { kLongest, kLargest, kLargestArea };
  static constexpr int kOrders = 3;

  Unplaced(const Problem& problem, const Items& items, const Phases& phases);

  void remove(ItemIdx i);
  void restore(ItemIdx i);

  ItemIdx count() const { return count_; }  // of all items, placed or not
  std::int32_t left(std::int32_t phase) const { return left_[phase]; }
  // In all phases.
  std::int32_t left() const { return std::accumulate(left_.begin(), left_.end(), 0); }
  std::int32_t phase_of(ItemIdx i) const { return phase_of_[i]; }
  // The first in an order, and the item that follows an unplaced one; kNoItem where there is none.
  ItemIdx first(Order order, std::int32_t phase) const { return known(next_[order][head(phase)]); }
  ItemIdx after(Order order, ItemIdx i) const { return known(next_[order][i]); }
  // Phases in which something is unplaced, by their number; -1 where there is none.
  std::int32_t first_phase() const { return next_phase_.back(); }
  std::int32_t phase_after(std::int32_t phase) const { return next_phase_[phase]; }

  // Circles that close both ways, of the counted length, with items of the phase only; and the
  // phases in which something is left, each once.
  bool check_invariants() const;

 private:
  ItemIdx head(std::int32_t phase) const { return count_ + phase; }
  ItemIdx known(ItemIdx i) const { return i < count_ ? i : kNoItem; }

  const ItemIdx count_;
  const std::vector<std::int32_t>& phase_of_;
  // By item, and then by phase: the heads, which close the circle of each list.
  std::array<std::vector<ItemIdx>, kOrders> next_;
  std::array<std::vector<ItemIdx>, kOrders> previous_;
  std::vector<std::int32_t> left_;        // by phase: how many are unplaced
  std::vector<std::int32_t> next_phase_;  // the last entry, -1 as an index, is the head
  std::vector<std::int32_t> previous_phase_;
};

}  // namespace memplan
