#include "memplan/telamalloc.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "model/answers.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/beside.h"
#include "published/telamalloc/learned.h"
#include "published/telamalloc/policy_search.h"
#include "published/telamalloc/search.h"
#include "util/failure.h"

namespace memplan {

namespace {

using Verdict = TelamallocSearch::Verdict;

template <typename Search>
Plan solution(const Problem& problem, const Items& items, const Search& search) {
  std::vector<Bytes> offsets;
  offsets.reserve(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) offsets.push_back(search.offset(i));
  return plan_of(problem, items, offsets, "the search found a solution");
}

// `Search` is one that runs from subproblem to subproblem, as TelamallocSearch does.
template <typename Search>
Plan solve_parts(const Problem& problem, const Items& items, std::int64_t node_budget,
                 Search* search, const Stopper& stopper) {
  if (!search->settle()) {
    if (stopper.stopped()) return unknown("the budget ran out");
    return infeasible(buffers_of(items, search->refutation()),
                      "propagation alone leaves some buffers no room");
  }
  if (search->steps() > node_budget) return unknown("the budget ran out");
  for (const Phases::Subproblem& part : search->subproblems()) {
    const Verdict verdict = search->run(part, node_budget);
    if (verdict == Verdict::kCutShort) return unknown("the budget ran out");
    if (verdict == Verdict::kExhausted) {
      return unknown("all candidates have been tried, which is no proof that nothing fits");
    }
  }
  return solution(problem, items, *search);
}

template <typename Search>
Plan solve_with(const Problem& problem, const Items& items, std::int64_t node_budget,
                Search* search, const Stopper& stopper) {
  Plan plan = solve_parts(problem, items, node_budget, search, stopper);
  plan.stats.nodes = search->steps();
  plan.stats.backtracks = search->backtracks();
  plan.stats.major_backtracks = search->major_backtracks();
  return plan;
}

enum class Learned { kOff, kOn, kPublished };

Learned parse(const TelamallocOptions& options) {
  if (options.learned == "off") return Learned::kOff;
  if (options.learned == "on") return Learned::kOn;
  if (options.learned != "published") {
    fail("there is no learned='" + options.learned + "': choose off, on or published.");
  }
  if (options.model == nullptr) {
    fail("learned=published needs a model: give one as the option model.");
  }
  return Learned::kPublished;
}

Plan answer_by_telamalloc(const Problem& problem, const Items& items,
                          const TelamallocOptions& options, std::int64_t node_budget,
                          Stopper& stopper, BacktrackPolicy* policy) {
  const Learned given = parse(options);
  if (std::optional<Plan> none = refuted_at_once(items)) return *std::move(none);
  Adjacency adjacent;
  if (const char* refusal = adjacent.build(items, stopper)) return unknown(refusal);
  if (stopper.look()) return unknown("the budget ran out");

  if (options.policy != nullptr && policy == nullptr) {
    PolicySearch search(problem, items, adjacent, options, stopper);
    return solve_with(problem, items, node_budget, &search, stopper);
  }
  const bool has_choice = policy == nullptr && options.select == "tela";
  const Learned learned = has_choice ? given : Learned::kOff;
  if (learned == Learned::kOn) {
    Beside search(problem, items, adjacent, options, stopper);
    return solve_with(problem, items, node_budget, &search, stopper);
  }
  std::optional<LearnedPolicy> model;
  if (learned == Learned::kPublished) policy = &model.emplace(*options.model);
  TelamallocSearch search(problem, items, adjacent, options, policy, stopper);
  return solve_with(problem, items, node_budget, &search, stopper);
}

}  // namespace

Plan telamalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const TelamallocOptions& options, std::int64_t node_budget, Stopper& stopper,
                BacktrackPolicy* policy) {
  const Items items = make_items(problem, sections, capacity);
  return found_by("telamalloc",
                  answer_by_telamalloc(problem, items, options, node_budget, stopper, policy));
}

}  // namespace memplan
