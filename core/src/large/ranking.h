// Corrects the orders of passes by what was rejected: the order by room, and any other one with the
// rejected in front.
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

  // `rows` in that order. Where the stopper ends the sort, the order is incomplete.
  std::vector<BufferIdx> sorted(const std::vector<BufferIdx>& rows, Stopper& stopper) const;

  void promote(const std::vector<BufferIdx>& rejected);

 private:
  const Profile* profile_;
  std::vector<int> room_class_;  // by buffer
};

// Moves the rejected to the front, and keeps the order of all others behind them.
void bump(const std::vector<BufferIdx>& rejected, std::vector<BufferIdx>* order);

}  // namespace memplan::chain
