#include "memplan/greedy.h"

#include <utility>

#include "solve/alone.h"
#include "solve/begin.h"

namespace memplan {

void run_greedy(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "greedy");
  GreedyOptions chosen = incumbent.options().greedy;
  if (chosen.target == 0) chosen.target = incumbent.target();
  Plan plan = greedy(incumbent.problem(), incumbent.sections(), chosen, incumbent.nodes_left(),
                     incumbent.stopper());
  incumbent.charge(plan.stats);
  incumbent.offer(std::move(plan), "greedy");
}

Plan solve_greedy(const Problem& problem, const SolveOptions& options) {
  require_well_posed(problem, options);
  Incumbent incumbent(problem, options);
  begin(incumbent, true);
  if (!incumbent.settled()) run_greedy(incumbent);
  return incumbent.finish("greedy");
}

}  // namespace memplan
