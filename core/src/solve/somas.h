// Single Object and Many Objects, as one call of solve() runs them.
#pragma once

#include "solve/incumbent.h"

namespace memplan {

void run_somas(Incumbent& incumbent);

}  // namespace memplan
