#include "solve/incumbent.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "memplan/bounds.h"
#include "model/ended_by.h"
#include "model/items.h"
#include "util/invariants.h"

namespace memplan {

namespace {
constexpr double kReportEvery = 0.5;  // seconds, where nothing has changed
}

Incumbent::Incumbent(const Problem& problem, const SolveOptions& options, Sections sections)
    : problem_(problem),
      options_(options),
      stopper_(options.budget.seconds, [this] { return look_up(); }),
      nodes_left_(options.budget.nodes),
      sections_(std::move(sections)) {
  const Lap lap(*this, "bound");
  know(bound_of_lifetimes(problem, sections_));
  // A pin may end above the capacity, but not above a limit that a search gets.
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    MEMPLAN_ASSERT(problem.pin_of(b) == kNoOffset ||
                   problem.pin[b] + problem.size[b] <= best_.lower_bound);
  }
}

bool Incumbent::check_invariants() const {
  if (best_.offsets.empty() || !has_plan()) return true;
  MEMPLAN_ASSERT(best_.offsets.size() == problem_.size.size());
  MEMPLAN_ASSERT(best_.peak == peak_of(problem_, best_.offsets));
  MEMPLAN_ASSERT(best_.lower_bound <= best_.peak && best_.peak <= capacity());
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    MEMPLAN_ASSERT(best_.offsets[b] >= 0 && best_.offsets[b] % problem_.alignment_of(b) == 0);
    MEMPLAN_ASSERT(problem_.pin_of(b) == kNoOffset || problem_.pin_of(b) == best_.offsets[b]);
  }
  return true;
}
void Incumbent::raise(const Bound& bound) {
  if (bound.bytes <= best_.lower_bound) return;
  know(bound);
  report();
}

void Incumbent::know(const Bound& bound) {
  MEMPLAN_ASSERT(bound.bytes >= best_.lower_bound && (!has_plan() || bound.bytes <= best_.peak));
  best_.lower_bound = bound.bytes;
  if (!has_plan()) best_.stats.note = std::string("bound: ") + bound.rule;
  conflict_ = bound.buffers;
  for (const BufferIdx b : conflict_) MEMPLAN_ASSERT(0 <= b && b < problem_.count());
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    for (auto k = sections_.span_begin[b]; k < sections_.span_begin[b + 1]; ++k) {
      const Span& span = sections_.spans[k];
      if (span.first <= bound.section && bound.section <= span.last) conflict_.push_back(b);
    }
  }
  if (best_.lower_bound > capacity()) best_.status = Status::kInfeasible;
}

bool Incumbent::settled() const {
  if (best_.status == Status::kInfeasible) return true;
  if (!best_.has_offsets()) return false;
  return fit_only() || best_.peak <= best_.lower_bound;
}

void Incumbent::charge(const Stats& stats) {
  MEMPLAN_ASSERT(stats.nodes >= 0 && stats.restarts >= 0);
  best_.stats.nodes += stats.nodes;
  best_.stats.restarts += stats.restarts;
  best_.stats.backtracks += stats.backtracks;
  best_.stats.major_backtracks += stats.major_backtracks;
  nodes_left_ -= std::max<std::int64_t>(1, stats.nodes);
}

void Incumbent::offer(Plan found, const char* solver) {
  if (!found.has_offsets() || (best_.has_offsets() && found.peak >= best_.peak)) return;
  MEMPLAN_ASSERT(best_.status != Status::kInfeasible && found.peak >= best_.lower_bound);
  best_.status = Status::kFeasible;
  best_.offsets = std::move(found.offsets);
  best_.peak = found.peak;
  best_.stats.solver = solver;
  best_.stats.note = found.stats.note;
  MEMPLAN_ASSERT(check_invariants());
  report();
}

void Incumbent::refuted(Bytes limit, std::vector<BufferIdx> conflict, const std::string& note) {
  if (limit < best_.lower_bound) return;
  MEMPLAN_ASSERT(!has_plan() || limit < best_.peak);  // else the plan contradicts the refutation
  best_.stats.note = note;
  conflict_ = std::move(conflict);
  best_.lower_bound = next_reachable_peak(problem_, sections_, limit + 1);
  MEMPLAN_ASSERT(best_.lower_bound > limit && (!has_plan() || best_.lower_bound <= best_.peak));
  if (best_.lower_bound > capacity()) best_.status = Status::kInfeasible;
  // No sum of sizes of the whole problem lies between the limit and the capacity, but one of these
  // rows alone may, so that they are no infeasible subset.
  if (limit < capacity() && best_.status == Status::kInfeasible) conflict_.clear();
  report();
}

Status Incumbent::learn(Bytes limit, std::int64_t nodes, Plan answer, const char* solver) {
  const Status status = answer.status;
  const Round round = round_of(limit, nodes, answer, solver, "");
  charge(answer.stats);
  if (status == Status::kInfeasible) {
    refuted(limit, std::move(answer.conflict), answer.stats.note);
  } else if (status == Status::kUnknown && !has_plan()) {
    note(answer.stats.note);
  }
  offer(std::move(answer), solver);
  trace(round);
  return status;
}

void Incumbent::take(Bytes target, std::int64_t nodes, Plan found, const char* solver,
                     const char* stage) {
  const Round round = round_of(target, nodes, found, solver, stage);
  charge(found.stats);
  offer(std::move(found), solver);
  trace(round);
}

// A round that used half of its nodes was ended by them, since a search may leave some that are too
// few for a dive.
Round Incumbent::round_of(Bytes target, std::int64_t nodes, const Plan& answer, const char* engine,
                          const char* stage) const {
  Round round;
  round.engine = engine;
  round.stage = stage;
  round.target = target;
  round.nodes = answer.stats.nodes;
  // A node of the prover is a conflict.
  const bool by_prover = std::string_view(engine) == "prover";
  round.conflicts = by_prover ? answer.stats.nodes : answer.stats.backtracks;
  const bool above = answer.has_offsets() && answer.peak > target;
  round.ended_by = ended_by(above ? Status::kUnknown : answer.status, stopper_,
                            answer.stats.nodes >= nodes / 2 ? "nodes" : "end");
  return round;
}

void Incumbent::trace(Round round) {
  if (!options_.trace) return;
  round.lower_bound = std::max(round.lower_bound, best_.lower_bound);
  if (!round.has_plan && has_plan()) {
    round.has_plan = true;
    round.peak = best_.peak;
  }
  if (round.seconds <= 0) round.seconds = stopper_.elapsed();
  options_.trace(round);
}

Plan Incumbent::finish(const char* solver) {
  if (best_.stats.solver.empty()) best_.stats.solver = solver;
  if (best_.status == Status::kFeasible && settled()) {
    best_.status = best_.peak == best_.lower_bound ? Status::kOptimal : Status::kFits;
  }
  if (!best_.has_offsets()) best_.peak = 0;
  MEMPLAN_ASSERT(check_invariants());
  MEMPLAN_ASSERT(best_.status != Status::kInfeasible || best_.offsets.empty());
  MEMPLAN_ASSERT(best_.status != Status::kOptimal || best_.peak == best_.lower_bound);
  if (best_.status == Status::kInfeasible) best_.conflict = std::move(conflict_);
  best_.stats.interrupted = stopper_.interrupted();
  return std::move(best_);
}

// The stopper calls this every 20 ms, from inside the engine at work.
bool Incumbent::look_up() {
  if (stopper_.elapsed() - reported_ >= kReportEvery) report();
  return options_.interrupt && options_.interrupt();
}

void Incumbent::report() {
  if (!options_.progress) return;
  reported_ = stopper_.elapsed();
  options_.progress(
      {reported_, has_plan(), best_.peak, best_.lower_bound, phase_, best_.stats.nodes});
}

Incumbent::Lap::Lap(Incumbent& incumbent, const char* phase)
    : incumbent_(incumbent),
      phase_(phase),
      outer_(incumbent.phase_),
      begin_(incumbent.stopper_.elapsed()) {
  incumbent.phase_ = phase;
}

Incumbent::Lap::~Lap() {
  if (*outer_ != '\0')
    incumbent_.phase_ = outer_;  // without an outer one, the phase keeps its name
  const double spent = incumbent_.stopper_.elapsed() - begin_;
  auto& seconds = incumbent_.best_.stats.seconds;
  for (auto& [phase, sum] : seconds) {
    if (phase != phase_) continue;
    sum += spent;
    return;
  }
  seconds.emplace_back(phase_, spent);
}

}  // namespace memplan
