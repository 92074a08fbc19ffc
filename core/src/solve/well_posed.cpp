#include <stdexcept>
#include <string>

#include "solve/alone.h"

namespace memplan {

Sections require_well_posed(const Problem& problem, const SolveOptions& options) {
  Sections sections;
  if (const std::string fault = check(problem, &sections); !fault.empty()) {
    throw std::invalid_argument(fault);
  }
  if (options.objective == Objective::kFit && !problem.capacity) {
    throw std::invalid_argument("a fit needs a capacity to fit in.");
  }
  return sections;
}

}  // namespace memplan
