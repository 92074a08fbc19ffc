#include <stdexcept>
#include <utility>

#include "greedy/first_fits.h"
#include "solve/alone.h"
#include "solve/questions.h"
#include "solve/searches.h"

namespace memplan {

Plan solve_search(const Problem& problem, const SolveOptions& options) {
  require_well_posed(problem, options);
  if (!problem.gaps.empty()) {
    throw std::invalid_argument("search does not support gaps: choose greedy, or solve by name.");
  }
  if (!problem.conflicts.empty() || !problem.group.empty()) {
    throw std::invalid_argument("search supports neither conflicts nor groups: solve by name.");
  }
  Incumbent incumbent(problem, options);
  if (!incumbent.settled()) {
    if (!incumbent.fit_only()) {
      const Incumbent::Lap lap(incumbent, "greedy");
      Plan plan = first_fits(problem, incumbent.sections(), incumbent.target(),
                             incumbent.nodes_left(), incumbent.stopper());
      incumbent.charge(plan.stats);
      incumbent.offer(std::move(plan), "greedy");
    }
    ask_in_rounds(incumbent, fast_search(incumbent, exact::kSmallestKinds), "search");
  }
  return incumbent.finish("search");
}

}  // namespace memplan
