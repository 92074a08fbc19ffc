#include "solve/begin.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "greedy/best_pass.h"
#include "greedy/coalescing.h"
#include "greedy/orders.h"
#include "greedy/passes.h"
#include "memplan/bounds.h"
#include "memplan/greedy.h"
#include "solve/last_resort.h"

namespace memplan {

namespace {

constexpr std::int64_t kSkylineNodes = 20;  // for each buffer

// Time is scarce where the first pass took this share of it: a whole search of many buffers takes
// some 2500 times as long.
constexpr double kScarce = 0.0004;
// Of a pass by size, for each buffer. Most need 100, and those of training steps do not end.
constexpr std::int64_t kStepsBySize = 256;
constexpr double kShareOfBestFit = 0.3;  // of the time: later there is no best fit

// The squeaky wheel would ignore hints that are to be kept, and options of greedy that were
// changed.
bool squeaks(const Incumbent& incumbent) {
  const SolveOptions& options = incumbent.options();
  return options.squeaky_wheel && incumbent.problem().hint.empty() && options.greedy.first_fit &&
         options.greedy.orders.empty();
}

void run_squeaky_wheel(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "greedy");
  const Bytes target = incumbent.target();
  const std::int64_t nodes = incumbent.nodes_left();
  incumbent.take(
      target, nodes,
      squeaky_wheel(incumbent.problem(), incumbent.sections(), target, nodes, incumbent.stopper()),
      "greedy", "squeaky wheel");
}

void run_in_time(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "greedy");
  const Bytes target = incumbent.first_target();
  incumbent.take(target, incumbent.nodes_left(), coalesce(incumbent, target), "greedy",
                 "in order of time");
}

Plan place_by_size(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "greedy");
  const Problem& problem = incumbent.problem();
  Stopper& stopper = incumbent.stopper();
  const Profile profile(problem, incumbent.sections(), stopper);
  const std::vector<BufferIdx> rows = sorted(order_of("size").key, profile, stopper);
  Passes passes(problem, incumbent.sections(), stopper);
  BestPass best(problem, kNoLimit);
  std::int64_t steps = kStepsBySize * problem.count();
  best.limits.steps = steps;
  best.take(passes.in_order(rows, Fit::kFirst, best.limits), "size, first fit", &steps);
  if (!best.enough(incumbent.target(), stopper) && stopper.share() < kShareOfBestFit) {
    best.take(passes.in_order(rows, Fit::kBest, best.limits), "size, best fit", &steps);
  }
  return std::move(best.plan);
}

// Whether the pass is worth its time, and was not made yet.
bool begins_in_time(const Incumbent& incumbent) {
  const BufferIdx count = incumbent.problem().count();
  return count > kCoalescingFirst && incumbent.nodes_left() > count && !incumbent.has_plan() &&
         coalescing_suits(incumbent.problem(), incumbent.sections());
}

}  // namespace

void run_skyline_wheel(Incumbent& incumbent) {
  if (!squeaks(incumbent)) return;
  const Incumbent::Lap lap(incumbent, "greedy");
  const Bytes target = incumbent.target();
  const std::int64_t nodes =
      std::min(kSkylineNodes * incumbent.problem().count(), incumbent.nodes_left() / 4);
  incumbent.take(target, nodes,
                 skyline_wheel(incumbent.problem(), incumbent.sections(), target, nodes,
                               incumbent.options().seed, incumbent.stopper()),
                 "greedy", "skyline");
}

void begin(Incumbent& incumbent, bool wants_plan, Plan* by_size) {
  if (incumbent.settled()) return;
  const bool first = wants_plan && squeaks(incumbent);
  if (first && begins_in_time(incumbent)) run_in_time(incumbent);
  if (by_size != nullptr && first && !incumbent.settled() &&
      incumbent.stopper().share() > kScarce) {
    *by_size = place_by_size(incumbent);
  }
  if (first && !incumbent.settled()) run_squeaky_wheel(incumbent);
  const bool related = has_relations(incumbent.problem());
  if ((!related && incumbent.sections().single_span) || incumbent.settled()) return;
  const Bytes target = incumbent.target();
  {
    const Incumbent::Lap lap(incumbent, "bound");
    incumbent.raise(lower_bound(incumbent.problem(), incumbent.sections()));
  }
  if (first && !incumbent.settled() && incumbent.target() > target) run_squeaky_wheel(incumbent);
  if (first && related && !incumbent.settled()) run_skyline_wheel(incumbent);
}

}  // namespace memplan
