// Runs the squeaky wheel on the skyline.
#include <algorithm>
#include <utility>
#include <vector>

#include "greedy/best_pass.h"
#include "greedy/insist.h"
#include "greedy/orders.h"
#include "greedy/passes.h"
#include "memplan/greedy.h"
#include "util/random.h"

namespace memplan {

namespace {

// Measured on the multi-stream graphs of the corpus: two in three that first fit does not plan at
// their bound are planned by one of these, most of those within a few passes of the first.
constexpr KeyOf kWheelOrders[] = {
    [](const Profile& p, BufferIdx b) {
      return Key{-static_cast<double>(p.room_class(b)), p.conflicts(b), p.extent(b)};
    },
    [](const Profile& p, BufferIdx b) { return Key{p.contention[b], p.length[b], p.extent(b)}; },
};
constexpr std::int64_t kNodes = 5;  // spent on one order, for each buffer

// Returns the next order. In later rounds all keys but the first are changed at random by up to 30
// %, so that the orders differ.
std::vector<BufferIdx> next_order(int round, const Profile& profile, Random* random,
                                  Stopper& stopper) {
  constexpr int kCount = std::size(kWheelOrders);
  std::vector<KeyedBuffer> rows(profile.length.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].buffer = static_cast<BufferIdx>(i);
    rows[i].key = kWheelOrders[round % kCount](profile, rows[i].buffer);
    for (std::size_t k = 1; k < rows[i].key.size() && round >= kCount; ++k) {
      rows[i].key[k] *= 0.7 + 0.001 * static_cast<double>(random->below(601));
    }
  }
  return sorted(rows, stopper);
}

}  // namespace

Plan skyline_wheel(const Problem& problem, const Sections& sections, Bytes target,
                   std::int64_t node_budget, std::uint64_t seed, Stopper& stopper) {
  BestPass best(problem, node_budget);
  best.plan.stats.solver = "greedy";
  best.limits.bytes = std::min(best.limits.bytes, target);
  best.limits.steps = kNoLimit;
  const Profile profile(problem, sections, stopper);
  Passes passes(problem, sections, stopper);
  Random random(seed);
  for (int round = 0; !best.enough(target, stopper); ++round) {
    insist(next_order(round, profile, &random, stopper), kNodes * problem.count(), 0, "skyline",
           target, stopper, &best,
           [&passes](const std::vector<BufferIdx>& order, const Limits& limits) {
             Draft draft = passes.on_skyline(order, limits);
             ++draft.nodes;  // so that every pass costs something, and the loop ends
             return draft;
           });
  }
  best.plan.stats.interrupted = stopper.interrupted();
  return std::move(best.plan);
}

}  // namespace memplan
