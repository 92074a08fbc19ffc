#include "exact/fit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "pairs.h"

namespace memplan::exact {

namespace {

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

Fit::Fit(const Problem& problem, const Sections& sections, Bytes capacity,
         const ExactOptions& options, std::uint64_t seed)
    : problem_(problem), sections_(sections), capacity_(capacity), options_(options), seed_(seed) {
  // With several spans or windows, "above" and "below" are no longer the only two relations that
  // a pair can have, and none of the fast search's rules holds: that is for pairs_fit.
  if (!sections.single_span) return;
  items_ = make_items(problem, sections, capacity);
  offsets_.assign(items_.count(), kNoOffset);
  if (items_.misfit < 0 && overfull_section(items_) < 0) tasks_ = make_tasks(items_);
}

Plan Fit::run(std::int64_t nodes, int threads, Stopper& stopper) {
  if (!sections_.single_span) return pairs_fit(problem_, sections_, capacity_, nodes, stopper);
  if (items_.misfit >= 0) return infeasible({items_.misfit}, "one buffer has no legal offset");
  if (const SectionIdx s = overfull_section(items_); s >= 0) {
    return infeasible(buffers_in_section(items_, s), "the load of a section is above the capacity");
  }

  Stats stats;
  for (; task_ < tasks_.size(); ++task_) {
    const Task& task = tasks_[task_];
    if (!lanes_) lanes_ = std::make_unique<Lanes>(task, options_, seed_);
    const Answer answer = lanes_->run(nodes, threads, stopper);
    nodes -= answer.nodes;
    stats.nodes += answer.nodes;
    stats.restarts += answer.restarts;
    if (answer.verdict == Verdict::kUnsat) {
      std::vector<BufferIdx> conflict;
      for (const ItemIdx i : answer.conflict) conflict.push_back(items_.buffer[i]);
      Plan plan = infeasible(std::move(conflict), "refuted by search");
      plan.stats.nodes = stats.nodes;
      plan.stats.restarts = stats.restarts;
      return plan;
    }
    if (answer.verdict == Verdict::kBudget) {
      Plan plan;
      plan.stats = stats;
      plan.stats.note = "the budget ended the search";
      return plan;
    }
    for (const ItemIdx i : task.source) offsets_[i] = answer.offsets[i];
    lanes_.reset();
  }
  std::vector<Bytes> settled = offsets_;
  settle(items_, settled);
  Plan plan = plan_of(problem_, items_, settled, "placed by search");
  plan.stats.nodes = stats.nodes;
  plan.stats.restarts = stats.restarts;
  return plan;
}

Plan Fit::infeasible(std::vector<BufferIdx> conflict, const char* note) const {
  Plan plan;
  plan.status = Status::kInfeasible;
  plan.conflict = std::move(conflict);
  std::sort(plan.conflict.begin(), plan.conflict.end());
  plan.stats.note = note;
  return plan;
}

}  // namespace memplan::exact

namespace memplan {

Plan exact_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               const ExactOptions& options, std::int64_t node_budget, int threads,
               std::uint64_t seed, Stopper& stopper) {
  return exact::Fit(problem, sections, capacity, options, seed).run(node_budget, threads, stopper);
}

}  // namespace memplan
