#include <cstdint>
#include <string>
#include <utility>

#include "greedy/first_fits.h"
#include "solve/alone.h"
#include "solve/exact_search.h"
#include "solve/prober.h"

namespace memplan {

std::string try_search(const Problem& problem, const SolveOptions& options, Plan* plan) {
  Sections sections;
  if (std::string fault = check_posed(problem, options, &sections); !fault.empty()) return fault;
  if (!problem.gaps.empty()) {
    return "search does not support gaps: choose greedy, or solve by name.";
  }
  if (!problem.conflicts.empty() || !problem.group.empty()) {
    return "search supports neither conflicts nor groups: solve by name.";
  }
  Incumbent incumbent(problem, options, std::move(sections));
  if (!incumbent.settled()) {
    if (!incumbent.fit_only()) {
      const Incumbent::Lap lap(incumbent, "greedy");
      const Bytes target = incumbent.target();
      const std::int64_t nodes = incumbent.nodes_left();
      incumbent.take(target, nodes,
                     first_fits(problem, incumbent.sections(), target, nodes, incumbent.stopper()),
                     "greedy", "first fit");
    }
    probe_in_rounds(incumbent, resumable_search(incumbent, exact::kWideOnly), "search");
  }
  *plan = incumbent.finish("search");
  return {};
}

}  // namespace memplan
