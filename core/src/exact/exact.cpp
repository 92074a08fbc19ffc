#include "memplan/exact.h"

#include "exact/fit_search.h"
#include "exact/pairs.h"
#include "exact/search_makers.h"

namespace memplan {

Plan exact_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               const ExactOptions& options, std::int64_t node_budget, int threads,
               std::uint64_t seed, Stopper& stopper) {
  if (!exact::FitSearch::suits(problem, sections)) {
    return pairs_fit(problem, sections, capacity, node_budget, stopper);
  }
  return exact::FitSearch(problem, sections, capacity, options, seed, exact::kAllMakers)
      .run(node_budget, threads, stopper);
}

}  // namespace memplan
