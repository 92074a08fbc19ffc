// Without a capacity there is always a plan: one pass for those whose budget ended before any did.
// Its placements are beside the budget, and so not among the nodes.
#pragma once

#include <cstdint>
#include <limits>

#include "solve/incumbent.h"

namespace memplan {

// Whether there ought to be a plan and is none. A capacity may be too small, and orders that were
// chosen are to be answered by themselves.
bool lacks_plan(const Incumbent& incumbent);

// First fit, however long it takes; or until it has done so much work.
void first_fit_anyway(Incumbent& incumbent,
                      std::int64_t steps = std::numeric_limits<std::int64_t>::max());

// The pass in order of time (greedy/coalescing.h). Its plan counts if it is within the capacity.
void coalesce_anyway(Incumbent& incumbent);

}  // namespace memplan
