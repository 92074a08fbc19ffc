#include "order/moves.h"

#include <algorithm>

namespace memplan::order {

namespace {

constexpr int kMaxChain = 12;

// The operator with the least to leave behind among those that became ready since `mark`, or -1.
OperatorIdx next_of_chain(const State& state, Bytes limit, std::size_t mark) {
  OperatorIdx best = -1;
  Bytes least = 0;
  for (std::size_t at = mark; at < state.count(); ++at) {
    for (const OperatorIdx op : state.program().after[state.done()[at]]) {
      if (!state.is_ready(op) || state.step(op) > limit) continue;
      const Bytes delta = state.delta(op);
      if (best < 0 || delta < least || (delta == least && op < best)) {
        best = op;
        least = delta;
      }
    }
  }
  return best;
}

// Whether a storage would be over after an operator that touches it, if one of those that ran and
// touch it, or none, had not run.
bool ends(const State& state, StorageIdx storage, bool one_less) {
  const Program& program = state.program();
  const auto users = static_cast<std::int32_t>(program.users[storage].size());
  return program.wanted[storage] == 0 && state.used(storage) - (one_less ? 1 : 0) + 1 == users;
}

}  // namespace

bool Moves::can_delay(const State& state, OperatorIdx op) const {
  if (!delays || state.program().workspace[op] > 0) return false;
  const auto touched = state.program().touched[op];
  return std::none_of(touched.begin(), touched.end(),
                      [&](StorageIdx s) { return ends(state, s, false); });
}

std::vector<OperatorIdx> Moves::needless(const State& state, OperatorIdx last) const {
  const Program& program = state.program();
  const auto is_touched = [&](StorageIdx s) {
    const auto touched = program.touched[last];
    return std::binary_search(touched.begin(), touched.end(), s);
  };
  std::vector<OperatorIdx> found;
  for (const OperatorIdx op : state.ready()) {
    const auto before = program.before[op];
    if (std::binary_search(before.begin(), before.end(), last)) continue;
    // If `last` lets `op` write in place, their order matters.
    const auto pairs = program.in_place[op];
    if (std::any_of(pairs.begin(), pairs.end(),
                    [&](const Pair& pair) { return is_touched(pair.input); })) {
      continue;
    }
    const auto touched = program.touched[op];
    if (op < last || std::any_of(
                         touched.begin(), touched.end(),
                         [&](StorageIdx s) { return ends(state, s, is_touched(s)); })) {
      found.push_back(op);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool Moves::commit(State& state, Bytes limit, std::size_t mark) const {
  bool all_wait = true;
  while (commits) {
    OperatorIdx next = -1;
    for (const OperatorIdx op : state.falling()) {
      if ((next < 0 || op < next) && state.step(op) <= limit) next = op;
    }
    if (next < 0) break;
    all_wait = all_wait && state.became_ready(next, mark);
    state.run(next);
  }
  return all_wait;
}

bool Moves::take(State& state, OperatorIdx op, Bytes limit) const {
  const Bytes before = state.live();
  std::size_t mark = state.count();
  state.run(op);
  bool is_chain = commit(state, limit, mark);
  if (!valleys) return false;
  const std::size_t taken = state.count();
  for (int length = 0; is_chain; ++length) {
    if (state.live() <= before) return true;
    const OperatorIdx next = length < kMaxChain ? next_of_chain(state, limit, mark) : -1;
    if (next < 0) break;
    mark = state.count();
    state.run(next);
    is_chain = commit(state, limit, mark);
  }
  state.rewind(taken);
  return false;
}

}  // namespace memplan::order
