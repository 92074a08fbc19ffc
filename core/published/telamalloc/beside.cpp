#include "published/telamalloc/beside.h"

#include <algorithm>

namespace memplan {

namespace {

// How many steps section 5 has alone, and then in each of its turns: enough to place all of a large
// subproblem a few times.
std::int64_t steps_alone(const Phases::Subproblem& part) {
  return std::max<std::int64_t>(3000, 4 * static_cast<std::int64_t>(part.size()));
}
std::int64_t steps_in_turn(const Phases::Subproblem& part) {
  return std::max<std::int64_t>(3000, 2 * static_cast<std::int64_t>(part.size()));
}

}  // namespace

Beside::Beside(const Problem& problem, const Items& items, const Adjacency& adjacent,
               const TelamallocOptions& options, Stopper& stopper)
    : problem_(problem),
      items_(items),
      adjacent_(adjacent),
      stopper_(stopper),
      plain_(problem, items, adjacent, options, nullptr, stopper) {}

Beside::Verdict Beside::run(const Phases::Subproblem& part, std::int64_t limit) {
  const std::int64_t begin = steps();
  const std::int64_t plain_begin = plain_.steps();
  plain_.begin(part);
  Verdict verdict = plain_.go_on(
      part, std::min(plain_.steps() + limit - begin, plain_.steps() + steps_alone(part)));
  if (verdict == Verdict::kSolved || steps() >= limit || stopper_.stopped()) {
    if (verdict != Verdict::kSolved) plain_.give_up();
    return verdict;
  }
  if (!restarts_) {
    restarts_ = std::make_unique<Restarts>(problem_, items_, adjacent_, plain_.phases(), stopper_);
  }
  restarts_->begin(part);
  const std::int64_t restarts_begin = restarts_->steps();
  for (;;) {
    // Each may go on as long as both together are within the limit.
    const std::int64_t behind =
        verdict == Verdict::kExhausted
            ? limit
            : (plain_.steps() - plain_begin) - (restarts_->steps() - restarts_begin);
    if (behind > 0 && restarts_->run(restarts_->steps() + std::min(behind, limit - steps()))) {
      return adopt(part) ? Verdict::kSolved : Verdict::kCutShort;
    }
    if (steps() >= limit || stopper_.stopped()) break;
    verdict = plain_.go_on(part, plain_.steps() + std::min(steps_in_turn(part), limit - steps()));
    if (verdict == Verdict::kSolved) return verdict;
  }
  plain_.give_up();
  return Verdict::kCutShort;
}

bool Beside::adopt(const Phases::Subproblem& part) {
  std::vector<Bytes> offsets(items_.size.size(), 0);
  for (std::int32_t k = part.begin; k < part.end; ++k) {
    const ItemIdx i = plain_.phases().items[k];
    offsets[i] = restarts_->offset(i);
  }
  return plain_.adopt(part, offsets);
}

}  // namespace memplan
