// A problem of some rows of another.
#pragma once

#include <vector>

#include "memplan/problem.h"

namespace memplan {

// Takes the rows, in the order given, with all their constraints, the reserved ranges and the
// capacity.
Problem subproblem(const Problem& problem, const std::vector<BufferIdx>& rows);

}  // namespace memplan
