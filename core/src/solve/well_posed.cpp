#include <string>

#include "solve/alone.h"

namespace memplan {

std::string check_posed(const Problem& problem, const SolveOptions& options, Sections* sections) {
  std::string fault = check(problem, sections);
  if (fault.empty() && options.objective == Objective::kFit && !problem.capacity) {
    fault = "a fit needs a capacity to fit in.";
  }
  return fault;
}

}  // namespace memplan
