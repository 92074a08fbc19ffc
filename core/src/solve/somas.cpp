#include "memplan/somas.h"

#include <utility>

#include "solve/incumbent.h"
#include "solve/somas.h"

namespace memplan {

void run_somas(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "somas");
  Plan plan = somas(incumbent.problem(), incumbent.sections(), incumbent.options().somas,
                    incumbent.nodes_left(), incumbent.stopper());
  incumbent.charge(plan.stats);
  const std::string solver = plan.stats.solver;
  incumbent.offer(std::move(plan), solver.c_str());
}

}  // namespace memplan
