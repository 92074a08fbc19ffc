#include "memplan/somas.h"

#include <cstdint>
#include <string>
#include <utility>

#include "solve/incumbent.h"
#include "solve/somas.h"

namespace memplan {

void run_somas(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "somas");
  const std::int64_t nodes = incumbent.nodes_left();
  Plan plan = somas(incumbent.problem(), incumbent.sections(), incumbent.options().somas, nodes,
                    incumbent.stopper());
  const std::string solver = plan.stats.solver;
  incumbent.take(incumbent.target(), nodes, std::move(plan), solver.c_str(), "");
}

}  // namespace memplan
