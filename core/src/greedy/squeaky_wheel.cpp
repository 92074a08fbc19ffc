#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "greedy/best_pass.h"
#include "greedy/orders.h"
#include "greedy/passes.h"
#include "memplan/greedy.h"

namespace memplan {

namespace {

// Orders that complement each other, with what may be spent on one without success: placements,
// for each buffer of the problem. Measured on the corpus: more of it costs more than it finds.
struct Start {
  const char* order;
  double nodes;
};
constexpr Start kStarts[] = {{"room_length", 0.25}, {"contention", 0.5}};
constexpr std::int64_t kLeastNodes = 100;
// Passes that end with their very last buffer, one of each order, and one that is still to come.
constexpr std::int64_t kWorstCase = 4;

std::string note(const char* order, int moved) {
  return std::string(order) + ", first fit" +
         (moved > 0 ? ", " + std::to_string(moved) + " moved up" : "");
}

// Moves the first buffer that has no offset; false where it is at the front already.
bool promote_first_unplaced(const std::vector<Bytes>& offsets, std::vector<BufferIdx>* order) {
  const auto at = std::find_if(order->begin(), order->end(),
                               [&offsets](BufferIdx b) { return offsets[b] == kNoOffset; });
  const auto half = order->begin() + (at - order->begin()) / 2;
  std::rotate(half, at, at + 1);
  return half != at;
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
  Passes passes(problem, sections, stopper);
  std::int64_t fastest = kNoLimit;
  for (const Start& start : kStarts) {
    if (best.enough(target, stopper)) break;
    std::vector<BufferIdx> order = sorted(order_of(start.order).key, profile, stopper);
    const auto patience = static_cast<std::int64_t>(start.nodes * problem.count());
    const std::int64_t most = best.plan.stats.nodes + std::max(kLeastNodes, patience);
    bool again = true;
    for (int moved = 0; again; ++moved) {
      Draft draft = passes.in_order(order, Fit::kFirst, best.limits);
      again = !draft.complete && promote_first_unplaced(draft.offsets, &order);
      best.take(std::move(draft), note(start.order, moved), &fastest);
      again = again && best.plan.stats.nodes < most && !best.enough(target, stopper);
    }
  }
  best.plan.stats.interrupted = stopper.interrupted();
  return std::move(best.plan);
}

}  // namespace memplan
