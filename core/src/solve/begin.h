// The plan and the bounds that come before every solver.
#pragma once

#include "solve/incumbent.h"

namespace memplan {

// Makes a first plan, if the solver wants one, and then the bounds that cost more than a plan,
// since the plan may make them needless.
void begin(Incumbent& incumbent, bool wants_plan);

// For problems with listed conflicts and groups: a few dozen passes on the skyline at the target.
// It is worth another call when the target has been raised.
void run_skyline_wheel(Incumbent& incumbent);

}  // namespace memplan
