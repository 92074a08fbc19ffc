#include "memplan/greedy.h"

#include <cstdint>
#include <string>
#include <utility>

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

std::string try_greedy(const Problem& problem, const SolveOptions& options, Plan* plan) {
  Sections sections;
  if (std::string fault = check_posed(problem, options, &sections); !fault.empty()) return fault;
  Incumbent incumbent(problem, options, std::move(sections));
  begin(incumbent, true);
  if (!incumbent.settled()) run_greedy(incumbent);
  *plan = incumbent.finish("greedy");
  return {};
}

}  // namespace memplan
