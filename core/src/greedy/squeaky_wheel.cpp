#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "greedy/best_pass.h"
#include "greedy/first_fit.h"
#include "greedy/insist.h"
#include "greedy/orders.h"
#include "memplan/greedy.h"

namespace memplan {

namespace {

// Orders that complement each other, each with the placements for each buffer of the problem that
// it may spend without success. Measured on the corpus: more of it costs more than it finds.
struct Start {
  const char* order;
  double nodes;
};
constexpr Start kStarts[] = {{"room_length", 0.25}, {"contention", 0.5}};
constexpr std::int64_t kLeastWheelNodes = 100;
// Beyond the cache, a new beginning costs as much as placing one in so many buffers.
constexpr std::int64_t kInCache = 20'000;
constexpr std::int64_t kBeginning = 32;
// In the worst case every start has a pass that ends only with its last buffer, and one whole pass
// must still be possible afterwards.
constexpr std::int64_t kWorstCase = 4;

// Insists from each start in turn.
void squeak(const Profile& profile, Bytes target, BestPass* best, Stopper& stopper,
            FirstFit* first_fit) {
  const std::int64_t count = profile.problem.count();
  for (const Start& start : kStarts) {
    if (best->enough(target, stopper)) return;
    const auto nodes = static_cast<std::int64_t>(start.nodes * static_cast<double>(count));
    insist(sorted(order_of(start.order).key, profile, stopper), std::max(kLeastWheelNodes, nodes),
           count > kInCache ? count / kBeginning : 0, std::string(start.order) + ", first fit",
           target, stopper, best,
           [first_fit](const std::vector<BufferIdx>& order, const Limits& limits) {
             return first_fit->in_order(order, limits);
           });
  }
}

}  // namespace

Plan squeaky_wheel(const Problem& problem, const Sections& sections, Bytes target,
                   std::int64_t node_budget, Stopper& stopper) {
  BestPass best(problem, node_budget);
  best.plan.stats.solver = "greedy";
  best.limits.bytes = std::min(best.limits.bytes, target);
  best.limits.steps = kNoLimit;
  if (node_budget / kWorstCase < problem.count()) return std::move(best.plan);
  const Profile profile(problem, sections, stopper);
  FirstFit first_fit(problem, sections, stopper);
  squeak(profile, target, &best, stopper, &first_fit);
  best.plan.stats.interrupted = stopper.interrupted();
  return std::move(best.plan);
}

}  // namespace memplan
