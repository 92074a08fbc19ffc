// The places where an order falls apart.
#pragma once

#include <cstddef>
#include <vector>

#include "order/program.h"

namespace memplan::order {

// Where parts begin in the order 0, 1, ...; the last entry is the number of operators. An operator
// that all earlier ones lead to, and that leads to all later ones, has the same place in every
// order: it is a part of its own, and the operators between two of them are another one.
std::vector<std::size_t> segments(const Program& program);

}  // namespace memplan::order
