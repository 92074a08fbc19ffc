// Stretches of an order where its peak is, which are searched exactly with fixed ends.
#pragma once

#include <vector>

#include "model/counter.h"
#include "order/moves.h"

namespace memplan::order {

struct WindowOptions {
  std::size_t width = 64;      // operators
  std::int64_t states = 2000;  // of each search
  Moves moves;                 // without delays, as these depend on the window
};

// Lowers the peak of an order of all operators until no window around it helps, or the peak is
// `lower`.
void improve_windows(const Program& program, std::vector<OperatorIdx>& order, Bytes lower,
                     const WindowOptions& options, Counter& counter);

}  // namespace memplan::order
