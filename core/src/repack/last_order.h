// The order in which a pass reached the bound, for the next pass, when a few buffers have changed.
#pragma once

#include <cstddef>
#include <vector>

#include "greedy/orders.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/repacker.h"
#include "memplan/sections.h"
#include "repack/words.h"

namespace memplan::repack {

// The keys may be out of date. In the calls below, `slots` are those in use, all below `count`, and
// the rows of the problem are theirs.
class LastOrder {
 public:
  bool empty() const { return order_.empty(); }
  void forget(Slot slot) {
    if (static_cast<std::size_t>(slot) < ordered_.size()) ordered_[slot] = 0;
  }
  // Sorts all buffers as the first pass of the squeaky wheel does.
  void remember(const std::vector<Slot>& slots, Slot count, const Problem& problem,
                const Sections& sections, Stopper& stopper);
  // Returns the rows in the order of the last time, in which new buffers go where their keys
  // belong. Sorting all costs as much as half of a pass.
  std::vector<BufferIdx> rows(const std::vector<Slot>& slots, Slot count, const Problem& problem,
                              const Sections& sections);
  // Writes or reads it. Throws std::invalid_argument for words that are no order of these slots.
  void pass(Words& words, const std::vector<Slot>& slots);

 private:
  // A buffer in the order of a pass: the greatest key goes first.
  struct KeyedSlot {
    Key key;
    Slot slot;
    bool operator<(const KeyedSlot& o) const { return key != o.key ? key > o.key : slot < o.slot; }
  };

  std::vector<KeyedSlot> order_;
  std::vector<char> ordered_;  // by slot: the buffer is in the order
};

}  // namespace memplan::repack
