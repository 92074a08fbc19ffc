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

}  // namespace

std::vector<OperatorIdx> Moves::choices(const State& state) const {
  if (delays != nullptr) return delays->choices(state);
  std::vector<OperatorIdx> ready = state.ready();
  std::sort(ready.begin(), ready.end());
  return ready;
}

void Moves::prepare(State& state, OperatorIdx op) const {
  if (state.is_ready(op)) return;
  for (const OperatorIdx other : delays->needs(state, op)) state.run(other);
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

// Live bytes rise and fall along an order, like hills and valleys. An order loses nothing by
// crossing a hill at one go if that is within the limit and ends no higher than it began. So after
// `op` the chain takes whatever leaves least behind among what `op` and its followers made ready.
// As long as all that ran depends on `op`, a state with no more live than before is a valley, and
// the search commits to it. Otherwise the chain is taken back, and only `op` and its commits stay.
bool Moves::take(State& state, OperatorIdx op, Bytes limit) const {
  const Bytes before = state.live();
  prepare(state, op);
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
