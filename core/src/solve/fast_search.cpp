#include <memory>

#include "exact/fit.h"
#include "solve/searches.h"

namespace memplan {

Questions::Search fast_search(Incumbent& incumbent, const exact::Kinds& kinds) {
  auto kept = std::make_shared<std::unique_ptr<exact::Fit>>();
  return [&incumbent, kept, kinds](Bytes limit, std::int64_t nodes) {
    const SolveOptions& options = incumbent.options();
    std::unique_ptr<exact::Fit>& fit = *kept;
    if (!fit || fit->capacity() != limit) {
      fit = std::make_unique<exact::Fit>(incumbent.problem(), incumbent.sections(), limit,
                                         options.exact, options.seed, kinds);
    }
    return fit->run(nodes, options.threads, incumbent.stopper());
  };
}

}  // namespace memplan
