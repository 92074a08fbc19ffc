#include <memory>

#include "exact/fit_search.h"
#include "solve/exact_search.h"

namespace memplan {

Prober::Search fast_search(Incumbent& incumbent, const exact::SearchMakers& makers) {
  auto kept = std::make_shared<std::unique_ptr<exact::FitSearch>>();
  return [&incumbent, kept, makers](Bytes limit, std::int64_t nodes) {
    const SolveOptions& options = incumbent.options();
    std::unique_ptr<exact::FitSearch>& fit = *kept;
    if (!fit || fit->capacity() != limit) {
      fit = std::make_unique<exact::FitSearch>(incumbent.problem(), incumbent.sections(), limit,
                                               options.exact, options.seed, makers);
    }
    return fit->run(nodes, options.threads, incumbent.stopper());
  };
}

}  // namespace memplan
