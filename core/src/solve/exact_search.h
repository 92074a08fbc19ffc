// The exact search for a prober: at the same limit, it resumes where it stopped.
#pragma once

#include "exact/search_makers.h"
#include "solve/incumbent.h"
#include "solve/prober.h"

namespace memplan {

// Suits any problem: the search over pairs stands in where the fast search does not suit.
Prober::Search exact_search(Incumbent& incumbent);

// Only for a problem that exact::FitSearch suits, in the widths of numbers that `makers` has.
Prober::Search fast_search(Incumbent& incumbent, const exact::SearchMakers& makers);

}  // namespace memplan
