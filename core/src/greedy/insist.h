// The loop of the squeaky wheel, for any kind of pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "greedy/best_pass.h"
#include "memplan/budget.h"
#include "memplan/types.h"

namespace memplan {

// Moves the buffer that was stuck, if there is one, to half its place; false where it can move no
// further.
inline bool promote(BufferIdx stuck, std::vector<BufferIdx>* order) {
  const auto at = std::find(order->begin(), order->end(), stuck);
  const auto half = order->begin() + (at - order->begin()) / 2;
  if (at == order->end() || half == at) return false;
  std::rotate(half, at, at + 1);
  return true;
}

// Calls pass(order, limits) again and again, each time with the stuck buffer promoted, until a
// draft reaches the target or the patience with this order is over. A pass costs its nodes and
// `beginning`.
template <typename Pass>
void insist(std::vector<BufferIdx> order, std::int64_t patience, std::int64_t beginning,
            const std::string& name, Bytes target, Stopper& stopper, BestPass* best, Pass pass) {
  std::int64_t fastest = kNoLimit;
  bool again = true;
  for (int moved = 0; again; ++moved) {
    Draft draft = pass(order, best->limits);
    patience -= draft.nodes + beginning;
    again = promote(draft.stuck, &order);
    best->take(std::move(draft),
               name + (moved > 0 ? ", " + std::to_string(moved) + " moved up" : ""), &fastest);
    again = again && patience > 0 && !best->enough(target, stopper);
  }
}

}  // namespace memplan
