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
// Visits for each buffer: of a beam of one plan, and in proportion of wider ones; and of all beams,
// which together end after a few seconds.
constexpr std::int64_t kVisitsOfBeam = 20'000;
constexpr std::int64_t kVisitsOfAll = 500'000;
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
  std::int64_t left = std::min(kMostVisits, kVisitsOfAll * problem.count());
  bool lowered = true;
  for (int width = 1; lowered && incumbent.is_open() && is_far(incumbent); width *= kBeamGrowth) {
    const Bytes target = incumbent.target();
    const Bytes limit = incumbent.top();
    const std::int64_t nodes = incumbent.nodes_left();
    const std::int64_t visits = kVisitsOfBeam * width * problem.count();
    if (visits > left) return;
    const BeamEffort effort{width,
                            std::min(visits, std::min(nodes, kMostVisits) * problem.count())};
    Draft draft =
        beam_in_time(problem, incumbent.sections(), target + (limit - target) / kFirstCeiling,
                     1 + (limit - target) / kCeilings, limit, effort, incumbent.stopper());
    left -= draft.steps;
    lowered = draft.complete;
    BestPass best(problem, nodes);
    std::int64_t steps = kNoLimit;
    best.take(std::move(draft), "beam in order of time", &steps);
    incumbent.take(target, nodes, std::move(best.plan), "greedy", "beam");
  }
}

}  // namespace memplan
