#include "exact/fit.h"
#include "exact/kinds.h"
#include "pairs/pairs.h"
#include "solve/searches.h"

namespace memplan {

Questions::Search exact_search(Incumbent& incumbent) {
  if (exact::Fit::suits(incumbent.problem(), incumbent.sections())) {
    return fast_search(incumbent, exact::kAllKinds);
  }
  return [&incumbent](Bytes limit, std::int64_t nodes) {
    return pairs_fit(incumbent.problem(), incumbent.sections(), limit, nodes, incumbent.stopper());
  };
}

}  // namespace memplan
