// A problem of some rows of another.
#pragma once

#include <vector>

#include "memplan/problem.h"

namespace memplan {

// The rows, in the order given, with all that is asked of them, the reserved ranges and the
// capacity.
Problem subproblem(const Problem& problem, const std::vector<BufferIdx>& rows);

}  // namespace memplan
