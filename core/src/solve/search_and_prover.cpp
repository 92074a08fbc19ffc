#include "solve/search_and_prover.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "exact/portfolio.h"
#include "model/ended_by.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// The time of one node, in steps of the prover: a visit to each buffer, or so.
constexpr std::int64_t kStepsPerVisit = 10;
// Once the prover has refuted the bound, the optimum is where proofs are long: the climb then gets
// so many slices instead of half of one.
constexpr std::int64_t kClimbSlices = 3;
// A refutation is cheap if it takes less than this part of what it may.
constexpr std::int64_t kCheap = 8;
// The search over pairs is the only one that handles gaps, listed conflicts and groups; it looks at
// each pair.
constexpr std::int64_t kStepsPerRelatedVisit = 3000;

// In a search for a fit, the part of its nodes that a bound with full sections has before the
// capacity is asked.
constexpr std::int64_t kHeadStart = 4;

Round round_of(Bytes limit, const Plan& answer, const prover::Slice& left) {
  Round round;
  round.engine = "prover";
  round.target = limit;
  round.has_plan = answer.has_offsets();
  round.peak = answer.peak;
  round.nodes = round.conflicts = answer.stats.nodes;
  round.ended_by = left.conflicts <= 0 ? "nodes" : left.steps <= 0 ? "steps" : "end";
  return round;
}

}  // namespace

SearchAndProver::SearchAndProver(Incumbent& incumbent, Engines engines)
    : incumbent_(incumbent),
      prober_(incumbent, std::move(engines.search), "exact"),
      with_prover_(engines.prover &&
                   prover::Prover::suits(incumbent.problem(), incumbent.sections())) {}

void SearchAndProver::dive(std::int64_t nodes) {
  if (!incumbent_.has_room()) {
    prober_.probe_from_bound(nodes, nodes);
    return;
  }
  prober_.probe_full_bound(nodes / kHeadStart);
  std::int64_t turn = exact::first_dive(incumbent_.problem().count());
  while (nodes > 0 && incumbent_.is_open()) {
    turn = std::min(turn, nodes);
    if (!prober_.probe_from_bound(turn, 2 * turn)) return;
    nodes -= turn;
    turn += turn / 2;
  }
}

bool SearchAndProver::round(std::int64_t slice) {
  const int threads = incumbent_.options().threads;
  const bool aside = threads > 1 && prober_.has_search() && with_prover_;
  const std::int64_t nodes = incumbent_.nodes_left();
  const std::int64_t conflicts = !with_prover_          ? 0
                                 : prober_.has_search() ? std::min(slice, nodes / 2)
                                                        : nodes;
  const Bytes limit = incumbent_.top();
  const std::int64_t steps = steps_down(slice);
  if (with_prover_) prepare_prover(limit);

  // A deferred prover begins when the search has ended its slice.
  std::atomic<bool> cancel{false};
  auto proving =
      std::async(aside ? std::launch::async : std::launch::deferred, [&, this]() -> Descent {
        Stopper* stopper = aside ? nullptr : &incumbent_.stopper();
        return with_prover_ ? descend(limit, conflicts, steps, stopper, &cancel) : Descent{};
      });
  bool more = prober_.has_search() && prober_.probe_from_bound(slice, nodes - conflicts);
  // From here on the prover is worth its time only if the search has left the question open.
  cancel = incumbent_.settled() || incumbent_.stopper().look();
  if (aside) {
    while (proving.wait_for(std::chrono::milliseconds(2)) != std::future_status::ready) {
      if (incumbent_.stopper().look()) cancel = true;
    }
  }
  if (incumbent_.settled() || (cancel && !aside)) return true;
  Descent descent;
  {
    const Incumbent::Lap lap(incumbent_, "prover");
    descent = proving.get();
  }
  more = more || descent.cut_short;
  learn(std::move(descent));
  more = climb(slice) || more;
  if (prober_.has_search() && !incumbent_.settled() && !incumbent_.fit_only()) {
    more = prober_.probe_halfway(slice) || more;
  }
  return more;
}

void SearchAndProver::prepare_prover(Bytes limit) {
  const SolveOptions& options = incumbent_.options();
  if (!prover_) {
    prover_ = std::make_unique<prover::Prover>(incumbent_.problem(), incumbent_.sections(), limit,
                                               options.prover, options.seed);
  }
  if (!incumbent_.has_plan() || incumbent_.peak() == suggested_) return;
  prover_->suggest(incumbent_.offsets());
  suggested_ = incumbent_.peak();
}

// Goes down from plan to plan, until a limit is refuted or the slice ends. It may run at the same
// time as the search, so it reads only what does not change of the incumbent.
SearchAndProver::Descent SearchAndProver::descend(Bytes limit, std::int64_t conflicts,
                                                  std::int64_t steps, Stopper* stopper,
                                                  const std::atomic<bool>* cancel) {
  Descent result;
  const bool fit_only = incumbent_.fit_only();
  while (conflicts > 0 && steps > 0) {
    prover::Slice slice{conflicts, steps};
    Plan answer = prover_->run(limit, &slice, stopper, cancel);
    result.cost.nodes += answer.stats.nodes;
    conflicts = slice.conflicts;
    steps = slice.steps;
    result.rounds.emplace_back(answer.status, round_of(limit, answer, slice));
    result.rounds.back().second.seconds = incumbent_.stopper().elapsed();
    if (answer.status == Status::kUnknown) {
      result.cut_short = conflicts <= 0 || steps <= 0;
      return result;
    }
    if (answer.status == Status::kInfeasible) {
      result.refuted = limit;
      result.refutation = std::move(answer);
      return result;
    }
    MEMPLAN_ASSERT(answer.peak <= limit);
    limit = answer.peak - 1;
    result.plan = std::move(answer);
    if (fit_only) return result;
  }
  result.cut_short = true;
  return result;
}

// A limit below the optimum is refuted the sooner the lower it is, so that all of them together
// often take less than to come down from a plan. At the optimum, the answer is a plan and its
// proof.
bool SearchAndProver::climb(std::int64_t slice) {
  if (!with_prover_ || incumbent_.fit_only()) return false;
  while (incumbent_.is_open() && incumbent_.lower_bound() < incumbent_.top()) {
    const Incumbent::Lap lap(incumbent_, "prover");
    const Bytes limit = stride_.next_limit(incumbent_);
    const std::int64_t conflicts = std::min(slice, incumbent_.nodes_left());
    const std::int64_t steps = climbs_ ? steps_of(slice, kClimbSlices) : steps_of(slice) / 2;
    prover::Slice left{conflicts, steps};
    Plan answer = ask_from_below(limit, &left);
    const Status status = incumbent_.learn(limit, conflicts, std::move(answer), "prover");
    if (status == Status::kUnknown) return left.conflicts <= 0 || left.steps <= 0;
    climbs_ = climbs_ || status == Status::kInfeasible;
    stride_.learn(incumbent_, status, steps - left.steps < steps / kCheap);
  }
  return true;
}

// Where only one limit is left, what was learned on the way down holds for it.
std::int64_t SearchAndProver::steps_down(std::int64_t slice) const {
  const bool one_is_left = incumbent_.lower_bound() == incumbent_.top();
  return climbs_ && one_is_left ? steps_of(slice, kClimbSlices) : steps_of(slice) / 2;
}

Plan SearchAndProver::ask_from_below(Bytes limit, prover::Slice* slice) {
  const SolveOptions& options = incumbent_.options();
  if (!from_below_ || asked_ != limit) {
    from_below_ = std::make_unique<prover::Prover>(incumbent_.problem(), incumbent_.sections(),
                                                   limit, options.prover, options.seed);
    asked_ = limit;
  }
  return from_below_->run(limit, slice, &incumbent_.stopper(), nullptr);
}

void SearchAndProver::learn(Descent descent) {
  MEMPLAN_ASSERT(descent.refuted < 0 || !descent.plan.has_offsets() ||
                 descent.refuted == descent.plan.peak - 1);
  incumbent_.charge(descent.cost);
  if (descent.plan.has_offsets() && descent.plan.peak <= incumbent_.top()) {
    suggested_ = descent.plan.peak;  // its own
    incumbent_.offer(std::move(descent.plan), "prover");
  }
  if (descent.refuted >= 0) {
    incumbent_.refuted(descent.refuted, std::move(descent.refutation.conflict),
                       descent.refutation.stats.note);
  }
  for (auto& [status, round] : descent.rounds) {
    round.ended_by = ended_by(status, incumbent_.stopper(), round.ended_by);
    incumbent_.trace(round);
  }
}

std::int64_t SearchAndProver::steps_of(std::int64_t slice, std::int64_t slices) const {
  const Problem& problem = incumbent_.problem();
  const bool pairs = has_relations(problem) || !incumbent_.sections().single_span;
  const std::int64_t visits = slices * std::max<BufferIdx>(1, problem.count()) *
                              (pairs ? kStepsPerRelatedVisit : kStepsPerVisit);
  return slice > std::numeric_limits<std::int64_t>::max() / visits
             ? std::numeric_limits<std::int64_t>::max()
             : slice * visits;
}

}  // namespace memplan
