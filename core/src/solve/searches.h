// The exact search, as one to put questions to: it goes on where it was.
#pragma once

#include "exact/kinds.h"
#include "solve/incumbent.h"
#include "solve/questions.h"

namespace memplan {

// For any problem.
Questions::Search exact_search(Incumbent& incumbent);

// Only for a problem that exact::Fit suits.
Questions::Search fast_search(Incumbent& incumbent, const exact::Kinds& kinds);

}  // namespace memplan
