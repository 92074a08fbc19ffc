#include "memplan/repacker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "greedy/coalescing.h"
#include "greedy/first_fit.h"
#include "greedy/orders.h"
#include "greedy/passes.h"
#include "memplan/bounds.h"
#include "memplan/budget.h"
#include "memplan/greedy.h"
#include "memplan/sections.h"
#include "model/subproblem.h"
#include "repack/arena.h"
#include "repack/ejection.h"
#include "repack/last_order.h"
#include "repack/trial.h"
#include "repack/words.h"
#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr const char* kName = "repack";
constexpr const char* kAuto = "auto";
constexpr std::int64_t kVersion = 1;  // of what save() writes

// The steps of an ejection search; beyond these a new plan costs less.
constexpr std::int64_t kEjections = 100;
constexpr std::int64_t kEjectionsEach = 32;      // for each that found no place,
constexpr std::int64_t kBuffersPerEjection = 4;  // but at most one for so many that are in
// What may be spent from the first that found no place, in looks: for each buffer that is in, and
// in all.
constexpr std::int64_t kLooksPerBuffer = 32;
constexpr std::int64_t kMostRepackLooks = 40'000;
// The same for the least peak: the bound is reached by a few steps or by none (measured).
constexpr std::int64_t kEjectionsToBound = 16;
// Of more unplaced buffers, if they are more than half, a new plan costs less than a hole for each.
constexpr std::size_t kMostToMend = 250;

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

  void pass(repack::Words& words);

  // Throws std::out_of_range for a slot that is not in use.
  void require(Slot slot) const {
    if (!arena.uses(slot)) {
      fail<std::out_of_range>("slot " + std::to_string(slot) + " is not in use.");
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
    bool may_squeak() const {
      return options.solver == kAuto && !options.outside && options.squeaky_wheel;
    }
  };

  void check_pins(const Problem& rows) const;
  bool answer(std::optional<Bytes> capacity, Call* call);
  bool changed_much();
  Status fit(Bytes limit, std::int64_t ejections, Call* call);
  bool settle_pins(Bytes limit);
  Status mend(Bytes limit, std::int64_t ejections, Call* call);
  void look_up();
  bool solve_from_scratch(std::optional<Bytes> capacity, Objective objective, Call* call);
  void minimise(std::optional<Bytes> capacity, Call* call);
  bool mends_to_bound(Bytes peak, Call* call);
  bool squeaks_to_bound(Call* call);
  bool packs_in_time(Bytes limit, Call* call);
  bool take(const Draft& draft, const char* note, repack::Trial* trial, Call* call);
  bool packs_to_fit(Bytes limit, Call* call);
  bool packs_as_before(Call* call);

  Bytes total_ = 0;  // of all sizes
  std::vector<Slot> unplaced_;
  std::vector<Slot> rejected_;
  // The buffers by row, if they were looked at as a problem.
  bool looked_up_ = false;
  bool squeaked_ = false;  // in this call
  std::vector<Slot> slots_;
  Problem problem_;
  Sections sections_;
  Bytes bound_ = 0;
  Time fullest_ = 0;            // when the load was greatest, the last time that it was looked for
  std::vector<Slot> conflict_;  // why fit() said kInfeasible
  const char* note_ = "";
  repack::LastOrder order_;
  // For the least peak: whether mending is enough, and whether ejections are part of it.
  repack::Trial mending_{2};
  repack::Trial ejections_{1};
  // For a fit, whether ejections are; and for both, whether these passes are.
  repack::Trial ejections_to_fit_{4};
  repack::Trial in_time_{2};
  repack::Trial as_before_{1};
};

std::vector<Slot> Repacker::State::add(const Problem& rows) {
  const std::string fault = check(rows);
  if (!fault.empty()) fail(fault);
  if (has_relations(rows)) {
    fail("a repacker supports neither conflicts nor groups: use solve().");
  }
  Bytes total = total_;
  for (const Bytes size : rows.size) {
    if (size > kMaxBytes - total) {
      fail("a repacker takes at most 2^62 bytes in all.");
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
  if (!fault.empty()) fail(fault);
}

void Repacker::State::remove(const std::vector<Slot>& slots) {
  std::vector<Slot> sorted = slots;
  std::sort(sorted.begin(), sorted.end());
  for (const Slot slot : sorted) require(slot);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    fail<std::out_of_range>("a slot to remove is named twice.");
  }
  for (const Slot slot : slots) {
    total_ -= arena.size(slot);
    arena.remove(slot);
    order_.forget(slot);
  }
}

Repacked Repacker::State::repack(std::optional<Bytes> capacity, const SolveOptions& options) {
  Call call(options);
  call.answer.stats.solver = kName;
  looked_up_ = false;
  squeaked_ = false;
  busy = true;
  bool answered = false;
  const std::exception_ptr thrown = caught([&] { answered = answer(capacity, &call); });
  if (!answered) arena.undo_to(0);
  busy = false;
  if (thrown) std::rethrow_exception(thrown);
  MEMPLAN_ASSERT(call.answer.status == Status::kUnknown ||
                 call.answer.status == Status::kInfeasible || arena.is_whole());
  call.answer.moved = arena.settle();
  MEMPLAN_ASSERT(check_invariants());
  call.answer.stats.interrupted = call.answer.stats.interrupted || call.stopper.interrupted();
  return std::move(call.answer);
}

void Repacker::State::pass(repack::Words& words) {
  std::int64_t version = kVersion;
  words.pass(version);
  repack::Words::require(version == kVersion);
  arena.pass(words);
  words.pass(total_);
  words.pass(fullest_);
  order_.pass(words, arena.slots());
  for (repack::Trial* each : {&mending_, &ejections_, &ejections_to_fit_, &in_time_, &as_before_}) {
    each->pass(words);
  }
  if (!words.reads()) return;
  Bytes left = kMaxBytes;
  for (const Slot slot : arena.slots()) {
    repack::Words::require(arena.size(slot) <= left);
    left -= arena.size(slot);
  }
  repack::Words::require(total_ == kMaxBytes - left);
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
  const bool least = call->options.objective == Objective::kMinPeak;
  const Bytes limit = capacity.value_or(kMaxBytes);
  if (least && (changed_much() || !mending_.due())) {
    look_up();
    if (bound_ <= limit && squeaks_to_bound(call)) return true;
  }
  answer.status = fit(limit, std::numeric_limits<std::int64_t>::max(), call);
  if (answer.status == Status::kInfeasible) {
    answer.conflict = std::move(conflict_);
    answer.stats.note = note_;
    return false;
  }
  if (answer.status == Status::kUnknown && !packs_to_fit(limit, call) &&
      !solve_from_scratch(capacity, Objective::kFit, call)) {
    return false;
  }
  MEMPLAN_ASSERT(arena.peak() <= limit);
  arena.file();
  answer.lower_bound = std::max(answer.lower_bound, arena.load_at(fullest_));
  if (least) minimise(capacity, call);
  const bool at_bound = arena.peak() <= answer.lower_bound;
  answer.status = at_bound ? Status::kOptimal : least ? Status::kFeasible : Status::kFits;
  return true;
}

// Whether mending to the least peak would hardly pay: where a new plan is cheap, more than one in
// 32 are new.
bool Repacker::State::changed_much() {
  if (arena.count() <= kCoalescingFirst) return false;
  unplaced_.clear();
  arena.above(kMaxBytes, &unplaced_);
  return 32 * unplaced_.size() > arena.count();
}

// Tries to fit by mending the plan that is there.
Status Repacker::State::fit(Bytes limit, std::int64_t ejections, Call* call) {
  arena.file();
  unplaced_.clear();
  arena.above(limit, &unplaced_);
  if (unplaced_.empty()) return Status::kFits;
  if (unplaced_.size() > kMostToMend && 2 * unplaced_.size() > arena.count()) {
    return Status::kUnknown;
  }
  const std::size_t before = arena.mark();
  const Status status = settle_pins(limit) ? mend(limit, ejections, call) : Status::kInfeasible;
  if (status != Status::kFits) arena.undo_to(before);
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
Status Repacker::State::mend(Bytes limit, std::int64_t ejections, Call* call) {
  Stats& stats = call->answer.stats;
  stats.nodes += static_cast<std::int64_t>(unplaced_.size());
  if (call->nodes_left() < 0) return Status::kUnknown;
  std::sort(unplaced_.begin(), unplaced_.end(), [this](Slot x, Slot y) {
    return arena.size(x) != arena.size(y) ? arena.size(x) > arena.size(y) : x < y;
  });
  rejected_.clear();
  std::int64_t last_look = 0;
  for (const Slot slot : unplaced_) {
    if (!rejected_.empty() && arena.looks() >= last_look) return Status::kUnknown;
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
      const auto count = static_cast<std::int64_t>(arena.count());
      last_look = arena.looks() + std::min(kMostRepackLooks, kLooksPerBuffer * count);
    }
    rejected_.push_back(slot);
  }
  if (rejected_.empty()) return Status::kFits;
  const bool to_fit = ejections > kEjectionsToBound;
  if (to_fit && !ejections_to_fit_.due()) return Status::kUnknown;
  repack::Ejection ejection(arena, call->options.seed, call->stopper);
  const std::int64_t steps =
      std::min(kEjections + kEjectionsEach * static_cast<std::int64_t>(rejected_.size()),
               kEjections + static_cast<std::int64_t>(arena.count()) / kBuffersPerEjection);
  const bool done = ejection.insert(rejected_, limit,
                                    std::min({steps, ejections, call->nodes_left()}), last_look);
  stats.nodes += ejection.steps();
  if (to_fit) ejections_to_fit_.end(done);
  return done ? Status::kFits : Status::kUnknown;
}

void Repacker::State::look_up() {
  if (looked_up_) return;
  looked_up_ = true;
  slots_ = arena.slots();
  problem_ = arena.problem(slots_);
  sections_ = sweep(problem_);
  const Bound bound = bound_of_lifetimes(problem_, sections_);
  bound_ = bound.bytes;
  if (bound.section >= 0) fullest_ = sections_.start[bound.section];
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
  if (squeaked_ && objective == Objective::kMinPeak) options.squeaky_wheel = false;
  Plan plan = solve(problem_, options);
  Repacked& answer = call->answer;
  answer.status = plan.status;
  answer.lower_bound = std::max(answer.lower_bound, plan.lower_bound);
  for (const BufferIdx row : plan.conflict) answer.conflict.push_back(slots_[row]);
  plan.stats.nodes += answer.stats.nodes;
  answer.stats = std::move(plan.stats);
  if (plan.has_offsets()) arena.replace(slots_, plan.offsets);
  return plan.has_offsets();
}

// Whether the plan after fit() is at the bound, or a few ejections bring it there.
bool Repacker::State::mends_to_bound(Bytes peak, Call* call) {
  Repacked& answer = call->answer;
  if (peak <= answer.lower_bound) return true;
  look_up();
  answer.lower_bound = std::max(answer.lower_bound, bound_);
  if (peak <= answer.lower_bound) return true;
  if (!ejections_.due()) return false;
  const bool done = fit(answer.lower_bound, kEjectionsToBound, call) == Status::kFits;
  ejections_.end(done);
  return done;
}

// Tries one pass of first fit at the bound in the order of the last time.
bool Repacker::State::packs_as_before(Call* call) {
  if (!as_before_.due() || order_.empty()) return false;
  Limits limits;
  limits.bytes = bound_;
  limits.nodes = call->nodes_left();
  limits.steps = std::numeric_limits<std::int64_t>::max();
  const std::vector<BufferIdx> rows = order_.rows(slots_, arena.slot_count(), problem_, sections_);
  return take(FirstFit(problem_, sections_, call->stopper).in_order(rows, limits),
              "first fit in the order of the plan before", &as_before_, call);
}

// Tries the cheapest pass of all.
bool Repacker::State::packs_in_time(Bytes limit, Call* call) {
  if (!coalescing_suits(problem_, sections_)) return false;
  if (call->nodes_left() < problem_.count() || !in_time_.due()) return false;
  return take(coalescing_fit(problem_, sections_, limit), "best fit in order of time", &in_time_,
              call);
}

// Takes what a pass planned, if it is complete; `trial` learns whether it was.
bool Repacker::State::take(const Draft& draft, const char* note, repack::Trial* trial, Call* call) {
  Stats& stats = call->answer.stats;
  stats.nodes += draft.nodes;
  ++stats.restarts;
  trial->end(draft.complete);
  if (!draft.complete) return false;
  stats.solver = "greedy";
  stats.note = note;
  arena.replace(slots_, draft.offsets);
  return true;
}

// The same for a fit, unless a full solve begins with that pass by itself.
bool Repacker::State::packs_to_fit(Bytes limit, Call* call) {
  if (!call->may_squeak()) return false;
  if (arena.count() > kCoalescingFirst || call->stopper.look()) return false;
  look_up();
  return bound_ <= limit && packs_in_time(limit, call);
}

// Tries to plan all again at the bound: in order of time, by the order of the plan before, or else
// by what `auto` would try first.
bool Repacker::State::squeaks_to_bound(Call* call) {
  if (squeaked_ || !call->may_squeak()) return false;
  squeaked_ = true;
  look_up();
  problem_.capacity.reset();
  Repacked& answer = call->answer;
  if (!packs_in_time(bound_, call) && !packs_as_before(call)) {
    Plan plan = squeaky_wheel(problem_, sections_, bound_, call->nodes_left(), call->stopper);
    answer.stats.nodes += plan.stats.nodes;
    answer.stats.restarts += plan.stats.restarts;
    if (!plan.has_offsets()) return false;
    answer.stats.solver = plan.stats.solver;
    answer.stats.note = plan.stats.note;
    arena.replace(slots_, plan.offsets);
    if (!as_before_.pauses()) {
      order_.remember(slots_, arena.slot_count(), problem_, sections_, call->stopper);
    }
  }
  answer.status = Status::kOptimal;
  answer.lower_bound = bound_;
  return true;
}

// Lowers the peak of the plan as far as it finds, by the cheapest means that is enough.
void Repacker::State::minimise(std::optional<Bytes> capacity, Call* call) {
  const Bytes peak = arena.peak();
  const bool mended = mends_to_bound(peak, call);
  mending_.end(mended);
  if (mended || squeaks_to_bound(call)) return;
  const std::size_t before = arena.mark();
  if (solve_from_scratch(capacity, Objective::kMinPeak, call) && arena.peak() >= peak) {
    arena.undo_to(before);  // the plan before is as good, and moves no buffer
  }
  MEMPLAN_ASSERT(arena.peak() <= peak);  // it only falls
}

Repacker::Repacker(std::vector<Reserved> reserved) {
  Problem empty;
  empty.reserved = reserved;
  if (const std::string fault = check(empty); !fault.empty()) fail(fault);
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

std::vector<std::int64_t> Repacker::save() const {
  repack::Words words;
  idle().pass(words);
  return words.take();
}

Repacker Repacker::restored(std::vector<std::int64_t> saved) {
  repack::Words words(std::move(saved));
  Repacker repacker;
  repacker.state_->pass(words);
  words.require_end();
  MEMPLAN_ASSERT(repacker.state_->check_invariants());
  return repacker;
}

Repacker::State& Repacker::idle() const {
  if (state_->busy) fail<std::runtime_error>("a repacker cannot serve two threads at once.");
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

std::vector<Bytes> Repacker::columns(const std::vector<Slot>& slots) const {
  const State& state = idle();
  for (const Slot slot : slots) state.require(slot);
  return state.arena.columns(slots);
}

Problem Repacker::problem(const std::vector<Slot>& slots) const {
  for (const Slot slot : slots) idle().require(slot);
  return idle().arena.problem(slots);
}

}  // namespace memplan
