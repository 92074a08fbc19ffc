#include "memplan/exact.h"

#include <algorithm>
#include <numeric>

#include "exact/lanes.h"
#include "exact/task.h"
#include "items.h"
#include "pairs.h"

namespace memplan {

namespace {

Plan infeasible(std::vector<BufferIdx> conflict, const char* note) {
  Plan plan;
  plan.status = Status::kInfeasible;
  plan.conflict = std::move(conflict);
  std::sort(plan.conflict.begin(), plan.conflict.end());
  plan.stats.note = note;
  return plan;
}

// The search may leave items hanging at the ceiling. From the lowest up, lets each fall on what
// lies below it: never higher than before, so the plan stays legal and its peak can only sink.
void settle(const Items& items, std::vector<Bytes>& offsets) {
  std::vector<ItemIdx> order(items.count());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](ItemIdx a, ItemIdx b) {
    return std::make_pair(offsets[a], a) < std::make_pair(offsets[b], b);
  });
  std::vector<Bytes> skyline(items.section_count, 0);
  for (const ItemIdx i : order) {
    const auto first = skyline.begin() + items.first(i);
    const auto last = skyline.begin() + items.last(i) + 1;
    offsets[i] = items.legal_above(i, *std::max_element(first, last));
    std::fill(first, last, offsets[i] + items.size[i]);
  }
}

}  // namespace

Plan exact_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               const ExactOptions& options, std::int64_t node_budget, int threads,
               std::uint64_t seed, Stopper& stopper) {
  // With several spans or windows, "above" and "below" are no longer the only two relations that
  // a pair can have, and none of the fast search's rules holds.
  if (!sections.single_span) return pairs_fit(problem, sections, capacity, node_budget, stopper);

  const Items items = make_items(problem, sections, capacity);
  if (items.misfit >= 0) return infeasible({items.misfit}, "one buffer has no legal offset");
  if (const SectionIdx s = overfull_section(items); s >= 0) {
    return infeasible(buffers_in_section(items, s), "the load of a section is above the capacity");
  }

  Plan plan;
  std::vector<Bytes> placed(items.count(), kNoOffset);
  for (const exact::Task& task : exact::make_tasks(items)) {
    exact::Lanes lanes(task, options, seed);
    const exact::Answer answer = lanes.run(node_budget, threads, stopper);
    node_budget -= answer.nodes;
    plan.stats.nodes += answer.nodes;
    plan.stats.restarts += answer.restarts;
    if (answer.verdict == exact::Verdict::kUnsat) {
      std::vector<BufferIdx> conflict;
      for (const ItemIdx i : answer.conflict) conflict.push_back(items.buffer[i]);
      const Stats stats = plan.stats;
      plan = infeasible(std::move(conflict), "refuted by search");
      plan.stats.nodes = stats.nodes;
      plan.stats.restarts = stats.restarts;
      return plan;
    }
    if (answer.verdict == exact::Verdict::kBudget) {
      plan.stats.note = "the budget ended the search";
      return plan;
    }
    for (const ItemIdx i : task.source) placed[i] = answer.offsets[i];
  }
  settle(items, placed);
  plan.status = Status::kOptimal;
  plan.offsets = items.offsets;
  for (ItemIdx i = 0; i < items.count(); ++i) plan.offsets[items.buffer[i]] = placed[i];
  plan.peak = peak_of(problem, plan.offsets);
  plan.stats.note = "placed by search";
  return plan;
}

}  // namespace memplan
