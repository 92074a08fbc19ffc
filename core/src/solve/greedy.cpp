#include "memplan/greedy.h"

#include <cstdint>

#include "solve/alone.h"
#include "solve/begin.h"

namespace memplan {

void run_greedy(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "greedy");
  GreedyOptions chosen = incumbent.options().greedy;
  if (chosen.target == 0) chosen.target = incumbent.target();
  const std::int64_t nodes = incumbent.nodes_left();
  incumbent.take(
      chosen.target, nodes,
      greedy(incumbent.problem(), incumbent.sections(), chosen, nodes, incumbent.stopper()),
      "greedy", "orders");
}

Plan solve_greedy(const Problem& problem, const SolveOptions& options) {
  Incumbent incumbent(problem, options, require_well_posed(problem, options));
  begin(incumbent, true);
  if (!incumbent.settled()) run_greedy(incumbent);
  return incumbent.finish("greedy");
}

}  // namespace memplan
