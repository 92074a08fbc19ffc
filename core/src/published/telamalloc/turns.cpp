#include "published/telamalloc/turns.h"

#include <algorithm>

namespace memplan {

namespace {

using Verdict = TelamallocSearch::Verdict;

// In steps. The rules begin anew with each turn, in the order of before, so that their turns must
// grow by far. What they have not found in the first is found by the model more often than by them.
constexpr std::int64_t kFirstTurn = 3000;
constexpr std::int64_t kGrowth = 8;
constexpr std::int64_t kModelShare = 15;
// Of one restart: a little at first, and in time a fixed share of all.
constexpr std::int64_t kShortest = 50;
constexpr std::int64_t kPart = 100;

}  // namespace

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

}  // namespace memplan
