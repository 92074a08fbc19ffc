#include "solve/exact_search.h"

#include "exact/fit_search.h"
#include "exact/pairs.h"
#include "exact/search_makers.h"

namespace memplan {

Prober::Search exact_search(Incumbent& incumbent) {
  if (exact::FitSearch::suits(incumbent.problem(), incumbent.sections())) {
    return resumable_search(incumbent, exact::kAllMakers);
  }
  return [&incumbent](Bytes limit, std::int64_t nodes) {
    return pairs_fit(incumbent.problem(), incumbent.sections(), limit, nodes, incumbent.stopper());
  };
}

}  // namespace memplan
