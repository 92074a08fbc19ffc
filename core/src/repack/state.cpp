#include "repack/state.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "memplan/sections.h"
#include "repack/ejection.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr const char* kName = "repack";

// The steps of an ejection search; beyond these a new plan costs less.
constexpr std::int64_t kEjections = 100;
constexpr std::int64_t kEjectionsEach = 32;      // for each that found no place,
constexpr std::int64_t kBuffersPerEjection = 4;  // but at most one for so many that are in

constexpr int kLongestPause = 15;

}  // namespace

Repacked Repacker::State::repack(std::optional<Bytes> capacity, const SolveOptions& options) {
  Call call(options);
  call.answer.stats.solver = kName;
  looked_up_ = false;
  busy = true;
  try {
    if (!answer(capacity, &call)) arena.undo_to(0);
  } catch (...) {
    arena.undo_to(0);
    busy = false;
    throw;
  }
  busy = false;
  MEMPLAN_ASSERT(call.answer.status == Status::kUnknown ||
                 call.answer.status == Status::kInfeasible || arena.is_whole());
  call.answer.moved = arena.settle();
  MEMPLAN_ASSERT(check_invariants());
  call.answer.stats.interrupted = call.answer.stats.interrupted || call.stopper.interrupted();
  return std::move(call.answer);
}

bool Repacker::State::check_invariants() const {
  if (!kAssertions) return true;
  Bytes total = 0;
  for (const Slot slot : arena.slots()) total += arena.size(slot);
  MEMPLAN_ASSERT(total == total_ && total <= kMaxBytes);
  return arena.check_invariants();
}
// Whether there is a plan.
bool Repacker::State::answer(std::optional<Bytes> capacity, Call* call) {
  Repacked& answer = call->answer;
  answer.status = fit(capacity.value_or(kMaxBytes), call);
  if (answer.status == Status::kInfeasible) {
    answer.conflict = std::move(conflict_);
    answer.stats.note = note_;
    return false;
  }
  if (answer.status == Status::kUnknown && !solve_anew(capacity, Objective::kFit, call)) {
    return false;
  }
  MEMPLAN_ASSERT(arena.peak() <= capacity.value_or(kMaxBytes));
  answer.status = Status::kOptimal;
  answer.lower_bound = std::max(answer.lower_bound, arena.load_at(fullest_));
  if (call->options.objective == Objective::kMinPeak) minimise(capacity, call);
  return true;
}

// Tries to fit by mending the plan that is there.
Status Repacker::State::fit(Bytes limit, Call* call) {
  homeless_.clear();
  arena.above(limit, &homeless_);
  if (homeless_.empty()) return Status::kOptimal;
  const std::size_t before = arena.mark();
  const Status status = settle_pins(limit) ? mend(limit, call) : Status::kInfeasible;
  if (status != Status::kOptimal) arena.undo_to(before);
  return status;
}

// Puts pinned buffers at their pins; those in the way become homeless. Returns false if a pinned
// buffer ends above the limit.
bool Repacker::State::settle_pins(Bytes limit) {
  const auto pinned = std::stable_partition(homeless_.begin(), homeless_.end(),
                                            [this](Slot slot) { return arena.is_pinned(slot); });
  const std::vector<Slot> pins(homeless_.begin(), pinned);
  homeless_.erase(homeless_.begin(), pinned);
  for (const Slot slot : homeless_) {
    if (arena.offset(slot) != kNoOffset) arena.displace(slot);
  }
  std::vector<Slot> others;
  for (const Slot slot : pins) {
    if (arena.pin(slot) > limit - arena.size(slot)) {
      conflict_ = {slot};
      note_ = "a pin ends above the capacity";
      return false;
    }
    others.clear();
    arena.in_the_way(slot, arena.pin(slot), &others);
    for (const Slot other : others) {
      if (arena.is_pinned(other)) continue;  // in one of its gaps
      arena.displace(other);
      homeless_.push_back(other);
    }
    arena.place(slot, arena.pin(slot));
  }
  return true;
}

// Places the homeless into holes, the largest first; where that is not enough, others give way.
Status Repacker::State::mend(Bytes limit, Call* call) {
  Stats& stats = call->answer.stats;
  stats.nodes += static_cast<std::int64_t>(homeless_.size());
  if (call->nodes_left() < 0) return Status::kUnknown;
  std::sort(homeless_.begin(), homeless_.end(), [this](Slot x, Slot y) {
    return arena.size(x) != arena.size(y) ? arena.size(x) > arena.size(y) : x < y;
  });
  rejected_.clear();
  for (const Slot slot : homeless_) {
    const Bytes offset = arena.lowest_place(slot, limit);
    if (offset != kNoOffset) {
      arena.place(slot, offset);
      continue;
    }
    if (rejected_.empty()) {
      if (const std::optional<Time> when = arena.overfull(slot, limit)) {
        conflict_ = arena.holding(*when);
        note_ = "more is held at one time than the capacity";
        return Status::kInfeasible;
      }
    }
    rejected_.push_back(slot);
  }
  if (rejected_.empty()) return Status::kOptimal;
  repack::Ejection ejection(arena, call->options.seed, call->stopper);
  const std::int64_t steps =
      std::min(kEjections + kEjectionsEach * static_cast<std::int64_t>(rejected_.size()),
               kEjections + static_cast<std::int64_t>(arena.count()) / kBuffersPerEjection);
  const bool done = ejection.insert(rejected_, limit, std::min(steps, call->nodes_left()));
  stats.nodes += ejection.steps();
  return done ? Status::kOptimal : Status::kUnknown;
}

void Repacker::State::look_up() {
  if (looked_up_) return;
  looked_up_ = true;
  slots_ = arena.slots();
  problem_ = arena.problem(slots_);
  const Sections sections = sweep(problem_);
  const std::vector<Bytes> load = loads(sections);
  const auto most = std::max_element(load.begin(), load.end());
  bound_ = most == load.end() ? 0 : *most;
  if (most != load.end()) fullest_ = sections.start[most - load.begin()];
  for (std::size_t row = 0; row < problem_.pin.size(); ++row) {
    if (problem_.pin[row] == kNoOffset) continue;
    bound_ = std::max(bound_, problem_.pin[row] + problem_.size[row]);
  }
}

bool Repacker::State::solve_anew(std::optional<Bytes> capacity, Objective objective, Call* call) {
  if (call->nodes_left() <= 0 || call->stopper.look()) return false;
  look_up();
  problem_.capacity = objective == Objective::kFit ? capacity.value_or(kMaxBytes) : capacity;
  SolveOptions options = call->options;
  options.objective = objective;
  options.budget.seconds -= call->stopper.elapsed();
  options.budget.nodes -= call->answer.stats.nodes;
  Plan plan = solve(problem_, options);
  Repacked& answer = call->answer;
  answer.status = plan.status;
  answer.lower_bound = std::max(answer.lower_bound, plan.lower_bound);
  for (const BufferIdx row : plan.conflict) answer.conflict.push_back(slots_[row]);
  plan.stats.nodes += answer.stats.nodes;
  answer.stats = std::move(plan.stats);
  if (plan.has_offsets()) put(plan.offsets);
  return plan.has_offsets();
}

void Repacker::State::put(const std::vector<Bytes>& offsets) {
  std::vector<std::size_t> changed;
  for (std::size_t row = 0; row < slots_.size(); ++row) {
    if (arena.offset(slots_[row]) == offsets[row]) continue;
    changed.push_back(row);
    if (arena.offset(slots_[row]) != kNoOffset) arena.displace(slots_[row]);
  }
  for (const std::size_t row : changed) arena.place(slots_[row], offsets[row]);
}

// Where mending has failed before, it is tried less and less often, since the bound may be out of
// reach.
bool Repacker::State::mends_to(Bytes limit, Call* call) {
  if (waits_ > 0) {
    --waits_;
    return false;
  }
  const bool done = fit(limit, call) == Status::kOptimal;
  pause_ = done ? 0 : std::min(2 * pause_ + 1, kLongestPause);
  waits_ = pause_;
  return done;
}

// Lowers the peak of the plan to the bound, by mending if that is enough.
void Repacker::State::minimise(std::optional<Bytes> capacity, Call* call) {
  Repacked& answer = call->answer;
  const Bytes peak = arena.peak();
  if (peak <= answer.lower_bound) return;
  look_up();
  answer.lower_bound = std::max(answer.lower_bound, bound_);
  if (peak <= answer.lower_bound || mends_to(answer.lower_bound, call)) return;
  const std::size_t before = arena.mark();
  if (solve_anew(capacity, Objective::kMinPeak, call) && arena.peak() >= peak) {
    arena.undo_to(before);  // the plan before is as good, and moves no buffer
  }
  MEMPLAN_ASSERT(arena.peak() <= peak);  // it only falls
  answer.status = arena.peak() <= answer.lower_bound ? Status::kOptimal : Status::kFeasible;
}

}  // namespace memplan
