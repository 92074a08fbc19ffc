// Moves from a state: operators that are taken at once, since no order loses by it.
#pragma once

#include "order/state.h"

namespace memplan::order {

struct Moves {
  bool commits = true;
  bool valleys = true;
  bool delays = true;

  // Takes every operator that leaves no more live behind and needs at most `limit` (T3): move it
  // to the front of any completion, and by submodularity no later step grows. Returns whether all
  // of them wait for what ran since `mark`, that is, none could run when `mark` operators had.
  bool commit(State& state, Bytes limit, std::size_t mark) const;

  // Runs `op`, with what can be committed then. Returns whether this is a valley (T4): all that
  // ran waits for `op`, no more is live than before, and no ideal between has less live; then
  // every order within the limit can go on from here. If the state is no valley yet, a chain of
  // operators that became ready may lead to one; if none does, the state is as after the commits.
  bool take(State& state, OperatorIdx op, Bytes limit) const;

  // Whether `op` may be delayed from here: it ends nothing and has no workspace.
  bool can_delay(const State& state, OperatorIdx op) const;

  // The operators that need not follow `last`, which could be delayed and has just run: in the
  // opposite order no step is larger. Of two such orders one stays, in which more is over earlier,
  // or else the one with the lower number first.
  std::vector<OperatorIdx> needless(const State& state, OperatorIdx last) const;
};

}  // namespace memplan::order
