// What a squeaky wheel gets.
#pragma once

#include <algorithm>
#include <vector>

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

}  // namespace memplan
