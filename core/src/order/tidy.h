// Among orders with one peak, one that is near the given order.
#pragma once

#include <vector>

#include "order/program.h"

namespace memplan::order {

// Brings operators back towards their given places, 0, 1, ..., while no step exceeds `peak`.
std::vector<OperatorIdx> tidy(const Program& program, std::vector<OperatorIdx> order, Bytes peak);

}  // namespace memplan::order
