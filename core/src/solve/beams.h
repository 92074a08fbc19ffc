// Beams in order of time (greedy/beam.h), where the best plan is far from the bound.
#pragma once

#include "solve/incumbent.h"

namespace memplan {

// Wider and wider beams, as long as they lower the peak.
void run_beams(Incumbent& incumbent);

}  // namespace memplan
