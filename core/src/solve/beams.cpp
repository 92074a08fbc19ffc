#include "solve/beams.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "greedy/beam.h"
#include "greedy/best_pass.h"

namespace memplan {

namespace {

// A beam places each buffer once and wastes some per cent, so that it cannot help where the plan is
// less than this part of the bound above it.
constexpr Bytes kFarFromBound = 32;
constexpr int kBeamGrowth = 4;
constexpr int kMostVain = 2;
// All beams together may take a millisecond or two for each buffer, and a few seconds.
constexpr std::int64_t kVisitsPerBuffer = 150'000;
constexpr std::int64_t kMostVisits = 300'000'000;
// Search and prover find better plans of fewer buffers.
constexpr BufferIdx kFewest = 100;
// Of the way from the bound to the best plan: where the ceiling begins, and by how much it rises.
constexpr Bytes kFirstCeiling = 4;
constexpr Bytes kCeilings = 16;

bool is_far(const Incumbent& incumbent) {
  const Bytes bound = incumbent.lower_bound();
  return incumbent.has_plan() && incumbent.top() - bound > bound / kFarFromBound;
}

}  // namespace

void run_beams(Incumbent& incumbent) {
  const Problem& problem = incumbent.problem();
  if (incumbent.fit_only() || problem.count() < kFewest) return;
  if (!beam_suits(problem, incumbent.sections())) return;
  const Incumbent::Lap lap(incumbent, "beams");
  std::int64_t visits = std::min(kMostVisits, kVisitsPerBuffer * problem.count());
  int vain = 0;
  for (int width = 1; vain < kMostVain && incumbent.is_open() && is_far(incumbent) && visits > 0;
       width *= kBeamGrowth) {
    const Bytes target = incumbent.target();
    const Bytes limit = incumbent.top();
    const std::int64_t nodes = incumbent.nodes_left();
    const BeamEffort effort{width,
                            std::min(visits, std::min(nodes, kMostVisits) * problem.count())};
    Draft draft =
        beam_in_time(problem, incumbent.sections(), target + (limit - target) / kFirstCeiling,
                     1 + (limit - target) / kCeilings, limit, effort, incumbent.stopper());
    visits -= draft.steps;
    vain = draft.complete ? 0 : vain + 1;
    BestPass best(problem, nodes);
    std::int64_t steps = kNoLimit;
    best.take(std::move(draft), "beam in order of time", &steps);
    incumbent.take(target, nodes, std::move(best.plan), "greedy", "beam");
  }
}

}  // namespace memplan
