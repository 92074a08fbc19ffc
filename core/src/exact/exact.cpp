#include "memplan/exact.h"

#include "exact/fit.h"
#include "exact/kinds.h"
#include "pairs/pairs.h"

namespace memplan {

Plan exact_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               const ExactOptions& options, std::int64_t node_budget, int threads,
               std::uint64_t seed, Stopper& stopper) {
  if (!exact::Fit::suits(problem, sections)) {
    return pairs_fit(problem, sections, capacity, node_budget, stopper);
  }
  return exact::Fit(problem, sections, capacity, options, seed, exact::kAllKinds)
      .run(node_budget, threads, stopper);
}

}  // namespace memplan
