// Moves from a state: operators that are taken at once, since no order loses by it.
#pragma once

#include "order/delays.h"
#include "order/state.h"

namespace memplan::order {

struct Moves {
  bool commits = true;
  bool valleys = true;
  const Delays* delays = nullptr;  // of the same program; without, every ready operator is tried

  // Takes every operator that leaves no more live behind and needs at most `limit`: move it
  // to the front of any completion, and by submodularity no later step grows. Returns whether all
  // of them wait for what ran since `mark`, that is, none could run when `mark` operators had.
  bool commit(State& state, Bytes limit, std::size_t mark) const;

  // The operators that are to be tried from here, ascending.
  std::vector<OperatorIdx> choices(const State& state) const;

  // Runs what a choice needs first; then state.step(op) is the largest step up to it.
  void prepare(State& state, OperatorIdx op) const;

  // Runs a choice, with what it needs first and what can be committed then. Returns whether this is
  // a valley: all that ran waits for `op` or is needed by it, no more is live than before, and
  // no ideal between has less live; then every order within the limit can go on from here. If the
  // state is no valley yet, a chain of operators that became ready may lead to one; if none does,
  // the state is as after the commits.
  bool take(State& state, OperatorIdx op, Bytes limit) const;
};

}  // namespace memplan::order
