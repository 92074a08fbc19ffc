// The exact search, as one to put questions to: it goes on where it was.
#pragma once

#include "exact/search_makers.h"
#include "solve/incumbent.h"
#include "solve/questions.h"

namespace memplan {

// For any problem.
Questions::Search exact_search(Incumbent& incumbent);

// Only for a problem that exact::FitSearch suits.
Questions::Search fast_search(Incumbent& incumbent, const exact::SearchMakers& makers);

}  // namespace memplan
