#include "exact/fit_search.h"

#include <algorithm>
#include <utility>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan::exact {

namespace {

// The search may leave items hanging at the ceiling. This lets each item fall on what lies below
// it, from the lowest up. No item rises, so the plan stays legal and its peak can only sink.
void settle(const Items& items, std::vector<Bytes>& offsets) {
  const std::vector<Ranked> by_offset =
      ranked(offsets.size(), [&offsets](ItemIdx i) { return offsets[i]; });
  std::vector<Bytes> skyline(items.section_count, 0);
  for (const auto& [offset, i] : by_offset) {
    const auto first = skyline.begin() + items.first(i);
    const auto last = skyline.begin() + items.last(i) + 1;
    offsets[i] = items.legal_above(i, *std::max_element(first, last));
    MEMPLAN_ASSERT(offsets[i] <= offset);
    std::fill(first, last, offsets[i] + items.size[i]);
  }
}

}  // namespace

FitSearch::FitSearch(const Problem& problem, const Sections& sections, Bytes capacity,
                     const ExactOptions& options, std::uint64_t seed, const SearchMakers& makers)
    : problem_(problem),
      capacity_(capacity),
      options_(options),
      seed_(seed),
      makers_(makers),
      items_(make_items(problem, sections, capacity)) {
  offsets_.assign(items_.count(), kNoOffset);
  if (items_.misfits.empty() && overfull_section(items_) < 0) tasks_ = make_tasks(items_);
}

// Solves the components one after the other, which share no time and cannot be in each other's way.
// All before `task_` have their offsets. The portfolio of the present one is kept between calls, so
// that a later call goes on with what was learned. One component without a plan refutes the whole.
Plan FitSearch::run(std::int64_t nodes, int threads, Stopper& stopper) {
  if (!items_.misfits.empty()) return infeasible(items_.misfits, items_.misfit_note());
  if (const SectionIdx s = overfull_section(items_); s >= 0) {
    return infeasible(buffers_in_section(items_, s), "the load of a section is above the capacity");
  }

  Stats stats;
  for (; task_ < tasks_.size(); ++task_) {
    const Task& task = tasks_[task_];
    if (!portfolio_) portfolio_ = std::make_unique<Portfolio>(task, options_, seed_, makers_);
    const Answer answer = portfolio_->run(nodes, threads, stopper);
    nodes -= answer.nodes;
    MEMPLAN_ASSERT(answer.nodes >= 0 && answer.restarts >= 0);
    stats.nodes += answer.nodes;
    stats.restarts += answer.restarts;
    if (answer.verdict == Verdict::kUnsat) {
      std::vector<char> involved(items_.size.size(), 0);
      for (const ItemIdx i : answer.conflict) involved[i] = 1;
      std::vector<BufferIdx> conflict;
      for (ItemIdx i = 0; i < items_.count(); ++i) {
        if (involved[i] != 0) conflict.push_back(items_.buffer[i]);
      }
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
    portfolio_.reset();
  }
  std::vector<Bytes> settled = offsets_;
  settle(items_, settled);
  Plan plan = plan_of(problem_, items_, settled, "placed by search");
  plan.stats.nodes = stats.nodes;
  plan.stats.restarts = stats.restarts;
  return plan;
}

Plan FitSearch::infeasible(std::vector<BufferIdx> conflict, const char* note) const {
  Plan plan;
  plan.status = Status::kInfeasible;
  plan.conflict = std::move(conflict);
  plan.stats.note = note;
  return plan;
}

}  // namespace memplan::exact
