#include <stdexcept>
#include <string>

#include "solve/alone.h"

namespace memplan {

void require_well_posed(const Problem& problem, const SolveOptions& options) {
  if (const std::string fault = check(problem); !fault.empty()) throw std::invalid_argument(fault);
  if (options.objective == Objective::kFit && !problem.capacity) {
    throw std::invalid_argument("a fit needs a capacity to fit in.");
  }
}

}  // namespace memplan
