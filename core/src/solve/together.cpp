#include "solve/together.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <utility>

#include "exact/fit.h"

namespace memplan {

namespace {

// The time of one node, in steps of the prover: a visit to each buffer, or so.
constexpr std::int64_t kStepsPerVisit = 10;

}  // namespace

Together::Together(Incumbent& incumbent, Engines engines)
    : incumbent_(incumbent), engines_(std::move(engines)) {
  engines_.prover =
      engines_.prover && prover::Prover::suits(incumbent.problem(), incumbent.sections());
}

bool Together::round(std::int64_t slice) {
  const int threads = incumbent_.options().threads;
  const bool aside = threads > 1 && engines_.search != nullptr && engines_.prover;
  const std::int64_t nodes = incumbent_.nodes_left();
  const std::int64_t conflicts = !engines_.prover             ? 0
                                 : engines_.search != nullptr ? std::min(slice, nodes / 2)
                                                              : nodes;
  const Bytes limit = incumbent_.top();
  if (engines_.prover) prepare_prover(limit);

  // Deferred, the prover begins when the search has ended its slice.
  std::atomic<bool> cancel{false};
  auto proving =
      std::async(aside ? std::launch::async : std::launch::deferred, [&, this]() -> Descent {
        Stopper* stopper = aside ? nullptr : &incumbent_.stopper();
        return engines_.prover ? descend(limit, conflicts, steps_of(slice), stopper, &cancel)
                               : Descent{};
      });
  bool more = engines_.search != nullptr && from_below(slice, nodes - conflicts);
  // From here on alone the prover can say something new, unless its answer came too late to count.
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
  if (engines_.search != nullptr && !incumbent_.settled() && !incumbent_.fit_only()) {
    more = halve(slice) || more;
  }
  return more;
}

// Questions from the bound upwards. It is the optimum more often than not, and then its plan is its
// own proof. Refuted, it rises in steps that double, since the optimum may be any number of bytes
// away.
bool Together::from_below(std::int64_t slice, std::int64_t nodes) {
  while (!incumbent_.settled() && nodes > 0 && !incumbent_.stopper().look()) {
    const Bytes top = incumbent_.top();
    const Bytes bound = incumbent_.lower_bound();
    stride_ = std::min(stride_, (top - bound) / 2);
    const Bytes limit = incumbent_.fit_only() ? top : bound + stride_;
    const std::int64_t nodes_before = incumbent_.nodes_left();
    const Status status = ask(limit, std::min(slice, nodes));
    const std::int64_t spent = nodes_before - incumbent_.nodes_left();
    nodes -= spent;
    if (status == Status::kUnknown) return spent >= slice / 2;
    stride_ = status == Status::kInfeasible ? std::max<Bytes>(1, 2 * stride_) : stride_ / 4;
  }
  return true;
}

// Easier questions to the search, a half nearer to the best plan each.
bool Together::halve(std::int64_t slice) {
  bool more = false;
  Bytes limit = incumbent_.lower_bound();
  while (!incumbent_.settled() && !incumbent_.out_of_budget() && limit < incumbent_.top()) {
    limit += std::max<Bytes>(1, (incumbent_.top() - limit + 1) / 2);
    const std::int64_t nodes_before = incumbent_.nodes_left();
    const Status status = ask(limit, std::min(slice, incumbent_.nodes_left()));
    if (status != Status::kUnknown) return true;
    more = more || nodes_before - incumbent_.nodes_left() >= slice / 2;
  }
  return more;
}

Status Together::ask(Bytes limit, std::int64_t nodes) {
  const Incumbent::Lap lap(incumbent_, engines_.name);
  return incumbent_.learn(limit, engines_.search(limit, nodes), engines_.name);
}

void Together::prepare_prover(Bytes limit) {
  const SolveOptions& options = incumbent_.options();
  if (!prover_) {
    prover_ = std::make_unique<prover::Prover>(incumbent_.problem(), incumbent_.sections(), limit,
                                               options.prover, options.seed);
  }
  if (!incumbent_.has_plan() || incumbent_.peak() == suggested_) return;
  prover_->suggest(incumbent_.offsets());
  suggested_ = incumbent_.peak();
}

// Down from plan to plan, until a limit is refuted or the slice ends. It may run beside the search:
// of the incumbent it sees what does not change.
Together::Descent Together::descend(Bytes limit, std::int64_t conflicts, std::int64_t steps,
                                    Stopper* stopper, const std::atomic<bool>* cancel) {
  Descent result;
  const bool fit_only = incumbent_.fit_only();
  while (conflicts > 0 && steps > 0) {
    prover::Slice slice{conflicts, steps};
    Plan answer = prover_->run(limit, &slice, stopper, cancel);
    result.cost.nodes += answer.stats.nodes;
    conflicts = slice.conflicts;
    steps = slice.steps;
    if (answer.status == Status::kUnknown) {
      result.cut_short = conflicts <= 0 || steps <= 0;
      return result;
    }
    if (answer.status == Status::kInfeasible) {
      result.refuted = limit;
      result.refutation = std::move(answer);
      return result;
    }
    limit = answer.peak - 1;
    result.plan = std::move(answer);
    if (fit_only) return result;
  }
  result.cut_short = true;
  return result;
}

void Together::learn(Descent descent) {
  incumbent_.charge(descent.cost);
  if (descent.plan.has_offsets() && descent.plan.peak <= incumbent_.top()) {
    suggested_ = descent.plan.peak;  // its own
    incumbent_.offer(std::move(descent.plan), "prover");
  }
  if (descent.refuted >= 0) {
    incumbent_.refuted(descent.refuted, std::move(descent.refutation.conflict),
                       descent.refutation.stats.note);
  }
}

std::int64_t Together::steps_of(std::int64_t slice) const {
  const std::int64_t visits = kStepsPerVisit * std::max<BufferIdx>(1, incumbent_.problem().count());
  return slice > std::numeric_limits<std::int64_t>::max() / visits
             ? std::numeric_limits<std::int64_t>::max()
             : slice * visits;
}

Together::Search exact_search(Incumbent& incumbent) {
  auto kept = std::make_shared<std::unique_ptr<exact::Fit>>();
  return [&incumbent, kept](Bytes limit, std::int64_t nodes) {
    const SolveOptions& options = incumbent.options();
    std::unique_ptr<exact::Fit>& fit = *kept;
    if (!fit || fit->capacity() != limit) {
      fit = std::make_unique<exact::Fit>(incumbent.problem(), incumbent.sections(), limit,
                                         options.exact, options.seed);
    }
    return fit->run(nodes, options.threads, incumbent.stopper());
  };
}

}  // namespace memplan
