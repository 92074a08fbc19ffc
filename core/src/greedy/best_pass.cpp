#include "greedy/best_pass.h"

#include <algorithm>
#include <utility>

#include "util/invariants.h"

namespace memplan {

BestPass::BestPass(const Problem& problem, std::int64_t node_budget) {
  limits.nodes = node_budget;
  if (problem.capacity) limits.bytes = std::min(limits.bytes, *problem.capacity);
}

void BestPass::take(Draft draft, const std::string& note, std::int64_t* fastest) {
  ++plan.stats.restarts;
  plan.stats.nodes += draft.nodes;
  MEMPLAN_ASSERT(draft.nodes >= 0 && draft.steps >= 0);
  limits.nodes -= draft.nodes;
  if (!draft.complete) return;
  MEMPLAN_ASSERT(draft.peak <= limits.bytes && (!plan.has_offsets() || draft.peak < plan.peak));
  *fastest = std::min(*fastest, std::max<std::int64_t>(1, draft.steps));
  plan.status = Status::kFeasible;
  plan.offsets = std::move(draft.offsets);
  plan.peak = draft.peak;
  plan.stats.note = note;
  limits.bytes = plan.peak - 1;
}

}  // namespace memplan
