// What comes before every solver.
#pragma once

#include "solve/incumbent.h"

namespace memplan {

// The bounds that cost more than a plan, after the plan that may make them needless. Where the
// solver wants none before its own, only the bounds.
void begin(Incumbent& incumbent, bool wants_plan);

// For problems with listed conflicts and groups: a few dozen passes on the skyline at the target.
// Where it has been raised, that is worth to be tried again.
void run_skyline_wheel(Incumbent& incumbent);

}  // namespace memplan
