// Without a capacity there is always a plan, so one pass is made where the budget ended before any
// other pass did. Its placements do not count against the budget, and are not among the nodes.
#pragma once

#include <cstdint>
#include <limits>

#include "solve/incumbent.h"

namespace memplan {

// Whether there ought to be a plan and is none. Not with a capacity, which may be too small, and
// not where the caller chose the orders, whose own result is wanted.
bool lacks_plan(const Incumbent& incumbent);

// The plan of the pass in order of time (greedy/coalescing.h), or none within the limit.
Plan coalesce(const Incumbent& incumbent, Bytes limit);

// Runs first fit, however long it takes, or until it has done so much work.
void first_fit_anyway(Incumbent& incumbent,
                      std::int64_t steps = std::numeric_limits<std::int64_t>::max());

// Runs the pass in order of time, within the capacity.
void coalesce_anyway(Incumbent& incumbent);

}  // namespace memplan
