#include "order/outlook.h"

#include <algorithm>

#include "order/cuts.h"

namespace memplan::order {

namespace {

constexpr std::size_t kMaxWatched = 8;
constexpr std::size_t kMaxSets = 64;
constexpr std::int64_t kAskedPerOperator = 256;  // until one more is watched
// A cut costs as much as hundreds of states, more in large programs. It is paid for by the states
// that are asked for, most by those that are found bad.
constexpr std::int64_t kPrepaidCuts = 128;
constexpr std::int64_t kPerState = 1;
constexpr std::int64_t kPerBadState = 16;
constexpr std::int64_t kPerCut = 16;

bool is_inside(const Bits& part, const Bits& whole) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    if ((part[i] & ~whole[i]) != 0) return false;
  }
  return true;
}

void set_bit(Bits& bits, OperatorIdx op) { bits[op >> 6] |= std::uint64_t{1} << (op & 63); }

bool has_bit(const Bits& bits, OperatorIdx op) { return ((bits[op >> 6] >> (op & 63)) & 1) != 0; }

// Adds the latest in front, since neighbours in the search are alike.
template <typename Set>
void remember(std::vector<Set>& sets, Set set) {
  if (sets.size() == kMaxSets) sets.pop_back();
  sets.insert(sets.begin(), std::move(set));
}

}  // namespace

Outlook::Outlook(const Program& program)
    : program_(program),
      refused_(program.workspace.size()),
      cost_(kPerCut + program.operators() / 2),
      credit_(kPrepaidCuts * cost_) {}

// Watches the operator that was refused most often, among those that are not watched yet.
void Outlook::watch_more() {
  OperatorIdx best = -1;
  for (const Watched& each : watched_) refused_[each.op] = 0;
  for (OperatorIdx op = 0; op < program_.operators(); ++op) {
    if (refused_[op] > 0 && (best < 0 || refused_[op] > refused_[best])) best = op;
  }
  if (best < 0) return;
  std::fill(refused_.begin(), refused_.end(), 0);
  watched_.push_back({best, {}, {}});
}

// A state that contains a cause is refuted without a flow. A state inside a side of a watched
// operator needs none for it. For the others there are new cuts, while there is credit.
Bytes Outlook::excess(const State& state, Bytes limit) {
  if (++asked_ % kAskedPerOperator == 0 && watched_.size() < kMaxWatched) watch_more();
  credit_ += kPerState;
  for (Watched& watched : watched_) {
    if (state.has_run(watched.op)) continue;
    for (std::size_t i = 0; i < watched.causes.size(); ++i) {
      const Bytes bound = watched.causes[i].bound;
      if (bound <= limit || !is_inside(watched.causes[i].bits, state.bits())) continue;
      std::swap(watched.causes[i], watched.causes[i / 2]);
      credit_ += kPerBadState;
      return bound;
    }
  }
  for (Watched& watched : watched_) {
    if (state.has_run(watched.op)) continue;
    const bool is_fine = std::any_of(
        watched.sides.begin(), watched.sides.end(),
        [&](const Set& side) { return side.bound <= limit && is_inside(state.bits(), side.bits); });
    if (is_fine || credit_ < cost_) continue;
    if (const Bytes bound = try_cut(watched, state, limit); bound > limit) return bound;
  }
  return 0;
}

Bytes Outlook::try_cut(Watched& watched, const State& state, Bytes limit) {
  credit_ -= cost_;
  const LaterCut cut = least_step_after(program_, watched.op, state.done());
  if (cut.bound <= limit) {
    Bits side(state.bits().size(), ~std::uint64_t{0});
    for (const OperatorIdx op : cut.late) side[op >> 6] &= ~(std::uint64_t{1} << (op & 63));
    remember(watched.sides, {std::move(side), cut.bound});
    return 0;
  }
  Bits cause(state.bits().size(), 0);
  std::vector<OperatorIdx> todo = cut.cause;
  for (const OperatorIdx op : todo) set_bit(cause, op);
  while (!todo.empty()) {
    const OperatorIdx op = todo.back();
    todo.pop_back();
    for (const OperatorIdx other : program_.before[op]) {
      if (has_bit(cause, other)) continue;
      set_bit(cause, other);
      todo.push_back(other);
    }
  }
  remember(watched.causes, {std::move(cause), cut.bound});
  return cut.bound;
}

}  // namespace memplan::order
