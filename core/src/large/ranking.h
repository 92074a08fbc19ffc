// The orders of passes, corrected by what was rejected: first fit by how much room a buffer has,
// and any order with the rejected in front.
#pragma once

#include <vector>

#include "greedy/orders.h"
#include "memplan/budget.h"
#include "memplan/problem.h"

namespace memplan::chain {

// Buffers that just fit go first; of those that have as much room (to a power of two), the long
// ones. A buffer that finds no place is ranked as one with half the room from then on. Sent to
// the very front instead, it would be in the way of those that can only go where it went.
class Ranking {
 public:
  explicit Ranking(const Profile& profile);  // which must outlive it

  // `rows` in that order. Cut short by the stopper, it is left half done.
  std::vector<BufferIdx> sorted(const std::vector<BufferIdx>& rows, Stopper& stopper) const;

  void promote(const std::vector<BufferIdx>& rejected);

 private:
  const Profile* profile_;
  std::vector<int> room_class_;  // by buffer
};

// The rejected to the front, everything else behind them as it was.
void bump(const std::vector<BufferIdx>& rejected, std::vector<BufferIdx>* order);

}  // namespace memplan::chain
