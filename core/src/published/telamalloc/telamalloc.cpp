#include "memplan/telamalloc.h"

#include <optional>
#include <utility>
#include <vector>

#include "model/answers.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/learned.h"
#include "published/telamalloc/search.h"
#include "published/telamalloc/turns.h"

namespace memplan {

namespace {

using Verdict = TelamallocSearch::Verdict;

Plan solution(const Problem& problem, const Items& items, const TelamallocSearch& search) {
  std::vector<Bytes> offsets;
  offsets.reserve(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) offsets.push_back(search.offset(i));
  return plan_of(problem, items, offsets, "the search found a solution");
}

Plan solve_parts(const Problem& problem, const Items& items, std::int64_t node_budget,
                 TelamallocSearch* search, std::optional<LearnedPolicy>* learned,
                 const Stopper& stopper) {
  if (!search->settle()) {
    if (stopper.stopped()) return unknown("the budget ran out");
    return infeasible(buffers_of(items, search->refutation()),
                      "propagation alone leaves some buffers no room");
  }
  if (search->steps() > node_budget) return unknown("the budget ran out");
  for (const Phases::Subproblem& part : search->subproblems()) {
    const Verdict verdict = *learned ? run_in_turns(part, node_budget, &**learned, search, stopper)
                                     : search->run(part, node_budget);
    if (verdict == Verdict::kCutShort) return unknown("the budget ran out");
    if (verdict == Verdict::kExhausted) {
      return unknown("all candidates have been tried, which is no proof that nothing fits");
    }
  }
  return solution(problem, items, *search);
}

Plan answer(const Problem& problem, const Items& items, const TelamallocOptions& options,
            std::int64_t node_budget, Stopper& stopper, BacktrackPolicy* policy) {
  if (std::optional<Plan> none = refuted_at_once(items)) return *std::move(none);
  Adjacency adjacent;
  if (const char* refusal = adjacent.build(items, stopper)) return unknown(refusal);
  if (stopper.look()) return unknown("the budget ran out");

  std::optional<LearnedPolicy> learned;
  const bool has_choice = policy == nullptr && options.select == "tela";
  if (has_choice && options.model != nullptr) learned.emplace(*options.model);
  TelamallocSearch search(problem, items, adjacent, options, policy, stopper);
  Plan plan = solve_parts(problem, items, node_budget, &search, &learned, stopper);
  plan.stats.nodes = search.steps();
  plan.stats.backtracks = search.backtracks();
  plan.stats.major_backtracks = search.major_backtracks();
  return plan;
}

}  // namespace

Plan telamalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const TelamallocOptions& options, std::int64_t node_budget, Stopper& stopper,
                BacktrackPolicy* policy) {
  const Items items = make_items(problem, sections, capacity);
  return found_by("telamalloc", answer(problem, items, options, node_budget, stopper, policy));
}

}  // namespace memplan
