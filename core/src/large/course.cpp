#include "large/course.h"

#include <algorithm>

#include "memplan/bounds.h"
#include "model/ended_by.h"
#include "model/items.h"
#include "util/invariants.h"

namespace memplan::chain {

namespace {

// What the first pass of best fit may cost, in passes of first fit.
constexpr std::int64_t kBestFitPatience = 32;

}  // namespace

Course::Course(const Problem& asked, const Sections& swept, const LargeOptions& chosen,
               std::int64_t node_budget, Stopper& stopped,
               const std::function<void(const Plan&)>& improved, const Tracer& trace)
    : problem(asked),
      sections(swept),
      options(chosen),
      stopper(stopped),
      profile(asked, swept, stopped),
      nodes_left(node_budget),
      improved_(improved),
      trace_(trace),
      passes_(asked, swept, stopped) {
  if (ShortLists::suits(asked, swept)) lists_.emplace(asked, swept, stopped);
  target = chosen.target > 0 ? chosen.target : lower_bound(asked, swept).bytes;
  if (asked.capacity) {
    limit = std::min(limit, *asked.capacity);
    target = std::min(target, limit);
  }
  goal = target;
}

std::vector<BufferIdx> Course::order(const std::string& name) {
  return sorted(order_of(name).key, profile, stopper);
}

void Course::spend(const char* stage, std::int64_t nodes, Status status, const char* otherwise) {
  MEMPLAN_ASSERT(nodes >= 0);
  plan.stats.nodes += nodes;
  nodes_left -= nodes;
  if (!trace_) return;
  Round round;
  round.engine = "large";
  round.stage = stage;
  round.target = goal;
  round.lower_bound = plan.lower_bound;
  round.nodes = nodes;
  round.ended_by = ended_by(status, stopper, nodes_left <= 0 ? "nodes" : otherwise);
  trace_(round);
}

Packing Course::pass(const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed, Fit fit,
                     const std::string& note) {
  std::int64_t& fastest = fit == Fit::kFirst ? fastest_ : fastest_best_fit_;
  Limits limits;
  limits.bytes = top();
  limits.nodes = nodes_left;
  limits.steps = times(patience, fastest);
  if (fit == Fit::kBest && fastest == kNoLimit) limits.steps = times(kBestFitPatience, fastest_);
  Packing packing = lists_ && fit == Fit::kFirst ? lists_->below(goal, order, fixed, limits)
                                                 : passes_.below(goal, order, fixed, fit, limits);
  ++plan.stats.restarts;
  if (packing.ended) fastest = std::min(fastest, std::max<std::int64_t>(1, packing.steps));
  if (packing.complete) take(packing.offsets, packing.peak, note);
  const bool below = packing.complete && packing.peak <= goal;
  spend(note.c_str(), packing.nodes, below ? Status::kFeasible : Status::kUnknown,
        packing.ended ? "end" : "steps");
  return packing;
}

Limits Course::limits_below_best(std::int64_t steps) const { return {top(), steps, nodes_left}; }

void Course::open_pass(const std::vector<BufferIdx>& order, Fit fit, const std::string& note) {
  const std::int64_t steps = times(fit == Fit::kFirst ? patience : kBestFitPatience, fastest_);
  take_open(passes_.in_order(order, fit, limits_below_best(steps)), note);
}

void Course::skyline_pass(const std::vector<BufferIdx>& order, const std::string& note) {
  take_open(passes_.on_skyline(order, limits_below_best(times(kBestFitPatience, fastest_))), note);
}

void Course::take_open(const Draft& draft, const std::string& note) {
  ++plan.stats.restarts;
  if (draft.complete) take(draft.offsets, draft.peak, note);
  spend(note.c_str(), draft.nodes, draft.complete ? Status::kFeasible : Status::kUnknown);
}

void Course::take(const std::vector<Bytes>& offsets, Bytes peak, const std::string& note) {
  if (plan.has_offsets() && peak >= plan.peak) return;
  MEMPLAN_ASSERT(peak == peak_of(problem, offsets) && peak <= top());
  MEMPLAN_ASSERT(std::count(offsets.begin(), offsets.end(), kNoOffset) == 0);
  MEMPLAN_ASSERT(peak >= target || options.target > 0);  // no plan is better
  plan.status = Status::kFeasible;
  plan.offsets = offsets;
  plan.peak = peak;
  plan.stats.note = note;
  if (improved_ && peak <= limit) improved_(plan);
}

}  // namespace memplan::chain
