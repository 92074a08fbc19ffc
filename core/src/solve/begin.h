// The plan and the bounds that come before every solver.
#pragma once

#include "solve/incumbent.h"

namespace memplan {

// Makes a first plan, if the solver wants one, and then the bounds that cost more than a plan,
// since the plan may make them needless.
//
// Where the time is scarce, `by_size` becomes the better plan of first fit and best fit by size. A
// search of a large problem may have none as good when its time is over. The caller offers it only
// then, so that a search that ends in time has the plan that it has without a limit.
void begin(Incumbent& incumbent, bool wants_plan, Plan* by_size = nullptr);

// For problems with listed conflicts and groups: a few dozen passes on the skyline at the target.
// It is worth another call when the target has been raised.
void run_skyline_wheel(Incumbent& incumbent);

}  // namespace memplan
