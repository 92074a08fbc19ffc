#include "memplan/repacker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/sections.h"
#include "model/subproblem.h"
#include "repack/arena.h"
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

// The state of a repacker, and its calls.
class Repacker::State {
 public:
  explicit State(std::vector<Reserved> reserved) : arena(std::move(reserved)) {}

  std::vector<Slot> add(const Problem& rows);
  void remove(const std::vector<Slot>& slots);
  Repacked repack(std::optional<Bytes> capacity, const SolveOptions& options);
  Bytes lower_bound() {
    looked_up_ = false;
    look_up();
    return bound_;
  }

  // Throws std::out_of_range for a slot that is not in use.
  void require(Slot slot) const {
    if (!arena.uses(slot)) {
      throw std::out_of_range("slot " + std::to_string(slot) + " is not in use.");
    }
  }

  repack::Arena arena;
  bool busy = false;  // repack() is at work

  // Checks the arena, and the total of its sizes.
  bool check_invariants() const;

 private:
  // One call of repack().
  struct Call {
    const SolveOptions& options;
    Stopper stopper;
    Repacked answer;

    explicit Call(const SolveOptions& given)
        : options(given), stopper(given.budget.seconds, given.interrupt) {}
    std::int64_t nodes_left() const { return options.budget.nodes - answer.stats.nodes; }
  };

  void check_pins(const Problem& rows) const;
  bool answer(std::optional<Bytes> capacity, Call* call);
  Status fit(Bytes limit, Call* call);
  bool settle_pins(Bytes limit);
  Status mend(Bytes limit, Call* call);
  void look_up();
  bool solve_from_scratch(std::optional<Bytes> capacity, Objective objective, Call* call);
  void minimise(std::optional<Bytes> capacity, Call* call);
  bool mends_to(Bytes limit, Call* call);
  void put(const std::vector<Bytes>& offsets);

  Bytes total_ = 0;  // of all sizes
  std::vector<Slot> unplaced_;
  std::vector<Slot> rejected_;
  // The buffers by row, if they were looked at as a problem.
  bool looked_up_ = false;
  std::vector<Slot> slots_;
  Problem problem_;
  Bytes bound_ = 0;
  Time fullest_ = 0;            // when the load was greatest, the last time that it was looked for
  std::vector<Slot> conflict_;  // why fit() said kInfeasible
  const char* note_ = "";
  int pause_ = 0;  // of mends_to(): calls between two trials, and those left
  int waits_ = 0;
};

std::vector<Slot> Repacker::State::add(const Problem& rows) {
  const std::string fault = check(rows);
  if (!fault.empty()) throw std::invalid_argument(fault);
  if (has_relations(rows)) {
    throw std::invalid_argument("a repacker supports neither conflicts nor groups: use solve().");
  }
  Bytes total = total_;
  for (const Bytes size : rows.size) {
    if (size > kMaxBytes - total) {
      throw std::invalid_argument("a repacker takes at most 2^62 bytes in all.");
    }
    total += size;
  }
  check_pins(rows);
  if (rows.count() == 0) return {};

  arena.make_room(*std::min_element(rows.start.begin(), rows.start.end()),
                  *std::max_element(rows.end.begin(), rows.end.end()), rows.size.size());
  std::vector<Slot> slots;
  slots.reserve(rows.size.size());
  auto gap = rows.gaps.begin();
  for (BufferIdx b = 0; b < rows.count(); ++b) {
    const auto first = gap;
    while (gap != rows.gaps.end() && gap->buffer == b) ++gap;
    slots.push_back(arena.add(rows, b, {first, gap}));
  }
  MEMPLAN_ASSERT(gap == rows.gaps.end());
  total_ = total;
  return slots;
}

// Checks that the new pins do not collide with those that are there, or with reserved ranges.
void Repacker::State::check_pins(const Problem& rows) const {
  std::vector<BufferIdx> pinned;
  for (BufferIdx b = 0; b < rows.count(); ++b) {
    if (rows.pin_of(b) != kNoOffset) pinned.push_back(b);
  }
  if (pinned.empty()) return;
  std::vector<Slot> slots = arena.slots();
  slots.erase(std::remove_if(slots.begin(), slots.end(),
                             [this](Slot slot) { return !arena.is_pinned(slot); }),
              slots.end());
  Problem all = arena.problem(slots);
  all.pin.resize(all.size.size(), kNoOffset);
  all.alignment.resize(all.size.size(), 1);
  const Problem added = subproblem(rows, pinned);
  const auto offset = all.count();
  for (Gap gap : added.gaps) {
    gap.buffer += offset;
    all.gaps.push_back(gap);
  }
  for (BufferIdx b = 0; b < added.count(); ++b) {
    all.start.push_back(added.start[b]);
    all.end.push_back(added.end[b]);
    all.size.push_back(added.size[b]);
    all.alignment.push_back(added.alignment_of(b));
    all.pin.push_back(added.pin[b]);
  }
  const std::string fault = check(all);
  if (!fault.empty()) throw std::invalid_argument(fault);
}

void Repacker::State::remove(const std::vector<Slot>& slots) {
  std::vector<Slot> sorted = slots;
  std::sort(sorted.begin(), sorted.end());
  for (const Slot slot : sorted) require(slot);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw std::out_of_range("a slot to remove is named twice.");
  }
  for (const Slot slot : slots) {
    total_ -= arena.size(slot);
    arena.remove(slot);
  }
}

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
  if (answer.status == Status::kUnknown && !solve_from_scratch(capacity, Objective::kFit, call)) {
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
  unplaced_.clear();
  arena.above(limit, &unplaced_);
  if (unplaced_.empty()) return Status::kOptimal;
  const std::size_t before = arena.mark();
  const Status status = settle_pins(limit) ? mend(limit, call) : Status::kInfeasible;
  if (status != Status::kOptimal) arena.undo_to(before);
  return status;
}

// Puts pinned buffers at their pins; those in the way become unplaced. Returns false if a pinned
// buffer ends above the limit.
bool Repacker::State::settle_pins(Bytes limit) {
  const auto pinned = std::stable_partition(unplaced_.begin(), unplaced_.end(),
                                            [this](Slot slot) { return arena.is_pinned(slot); });
  const std::vector<Slot> pins(unplaced_.begin(), pinned);
  unplaced_.erase(unplaced_.begin(), pinned);
  for (const Slot slot : unplaced_) {
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
      unplaced_.push_back(other);
    }
    arena.place(slot, arena.pin(slot));
  }
  return true;
}

// Places the unplaced buffers into holes, the largest first; where that is not enough, others give
// way.
Status Repacker::State::mend(Bytes limit, Call* call) {
  Stats& stats = call->answer.stats;
  stats.nodes += static_cast<std::int64_t>(unplaced_.size());
  if (call->nodes_left() < 0) return Status::kUnknown;
  std::sort(unplaced_.begin(), unplaced_.end(), [this](Slot x, Slot y) {
    return arena.size(x) != arena.size(y) ? arena.size(x) > arena.size(y) : x < y;
  });
  rejected_.clear();
  for (const Slot slot : unplaced_) {
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

bool Repacker::State::solve_from_scratch(std::optional<Bytes> capacity, Objective objective,
                                         Call* call) {
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
  if (solve_from_scratch(capacity, Objective::kMinPeak, call) && arena.peak() >= peak) {
    arena.undo_to(before);  // the plan before is as good, and moves no buffer
  }
  MEMPLAN_ASSERT(arena.peak() <= peak);  // it only falls
  answer.status = arena.peak() <= answer.lower_bound ? Status::kOptimal : Status::kFeasible;
}

Repacker::Repacker(std::vector<Reserved> reserved) {
  Problem empty;
  empty.reserved = reserved;
  if (const std::string fault = check(empty); !fault.empty()) throw std::invalid_argument(fault);
  state_ = std::make_unique<State>(std::move(reserved));
}

Repacker::~Repacker() = default;
Repacker::Repacker(const Repacker& other) : state_(std::make_unique<State>(other.idle())) {}
Repacker& Repacker::operator=(const Repacker& other) {
  if (this != &other) state_ = std::make_unique<State>(other.idle());
  return *this;
}
Repacker::Repacker(Repacker&&) noexcept = default;
Repacker& Repacker::operator=(Repacker&&) noexcept = default;

Repacker::State& Repacker::idle() const {
  if (state_->busy) throw std::runtime_error("a repacker cannot serve two threads at once.");
  return *state_;
}

std::vector<Slot> Repacker::add(const Problem& rows) { return idle().add(rows); }

void Repacker::remove(const std::vector<Slot>& slots) { idle().remove(slots); }

Repacked Repacker::repack(std::optional<Bytes> capacity, const SolveOptions& options) {
  return idle().repack(capacity, options);
}

std::size_t Repacker::count() const { return idle().arena.count(); }
Bytes Repacker::lower_bound() { return idle().lower_bound(); }
Bytes Repacker::peak() const { return idle().arena.peak(); }
std::vector<Slot> Repacker::slots() const { return idle().arena.slots(); }

Bytes Repacker::offset(Slot slot) const {
  idle().require(slot);
  return state_->arena.offset(slot);
}

Problem Repacker::problem(const std::vector<Slot>& slots) const {
  for (const Slot slot : slots) idle().require(slot);
  return idle().arena.problem(slots);
}

}  // namespace memplan
