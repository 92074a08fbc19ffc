#include "memplan/telamalloc.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "model/answers.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/learned.h"
#include "published/telamalloc/search.h"

namespace memplan {

namespace {

using Verdict = TelamallocSearch::Verdict;

// The turns, in steps. The rules start again in each turn, in the same order as before, so their
// turns must grow much. What they do not find in the first turn, the model finds more often than
// they do.
constexpr std::int64_t kFirstTurn = 3000;
constexpr std::int64_t kGrowth = 8;
constexpr std::int64_t kModelShare = 15;
// The steps of one restart: a few at first, and later a fixed share of all.
constexpr std::int64_t kShortest = 50;
constexpr std::int64_t kPart = 100;

Plan solution(const Problem& problem, const Items& items, const TelamallocSearch& search) {
  std::vector<Bytes> offsets;
  offsets.reserve(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) offsets.push_back(search.offset(i));
  return plan_of(problem, items, offsets, "the search found a solution");
}

// Runs the search by the rules and restarts with a model in turns.
//
//   by the rules         |--|            |--------|                    |------ ...
//   with the model          |-|-|-|-|-|-|         |--|--|--|--|-- ... -|
//                           each from the top, with other random candidates
//
// As TelamallocSearch::run(). What the rules solve soon is solved as without a model. After that, a
// model that is wrong about a problem, or stays in a part of the tree without solutions, costs no
// more than its turn. It ends with a solution, or at the limit.
Verdict run_in_turns(const Phases::Subproblem& part, std::int64_t limit, LearnedPolicy* model,
                     TelamallocSearch* search, const Stopper& stopper) {
  std::uint64_t seed = 0;
  bool exhausted = false;  // by the rules: they would come to the same end
  for (std::int64_t turn = kFirstTurn;; turn *= kGrowth) {
    if (!exhausted) {
      search->follow(nullptr, 0);
      const Verdict verdict = search->run(part, std::min(limit, search->steps() + turn));
      if (verdict == Verdict::kSolved) return verdict;
      exhausted = verdict == Verdict::kExhausted;
    }
    const std::int64_t end = std::min(limit, search->steps() + kModelShare * turn);
    while (search->steps() < end && !stopper.stopped()) {
      const std::int64_t length = kShortest + search->steps() / kPart;
      search->follow(model, ++seed);
      const Verdict verdict = search->run(part, std::min(end, search->steps() + length));
      if (verdict == Verdict::kSolved) return verdict;
    }
    if (search->steps() >= limit || stopper.stopped()) return Verdict::kCutShort;
  }
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
  if (has_choice && options.learned != nullptr) learned.emplace(*options.learned);
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
