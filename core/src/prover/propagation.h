// The fixpoint of everything that follows from the trail without a decision.
#pragma once

#include <cstdint>

#include "memplan/prover.h"
#include "prover/clauses.h"
#include "prover/cliques.h"
#include "prover/cuts.h"
#include "prover/halt.h"
#include "prover/trail.h"
#include "util/invariants.h"

namespace memplan::prover {

class Propagator {
 public:
  Propagator(const Model& model, const ProverOptions& options, Trail& trail, Clauses& clauses);

  // Returns false at a conflict. It may stop short of the fixpoint, to be called again: when `halt`
  // stops it, and after `most` steps where there are groups, since a cycle of groups can make
  // bounds creep.
  bool propagate(Conflict* conflict, std::int64_t most, const Halt& halt);
  bool is_short() const { return is_short_; }
  // To be called after all items lost room: it schedules again what only depends on orders.
  void narrow();
  // To be called after backtracking to a level that was at its fixpoint.
  void forget();

  std::int64_t steps() const { return steps_ + cliques_.steps() + cuts_.steps(); }

  bool check_invariants() const {
    MEMPLAN_ASSERT(next_ <= trail_.size() && steps_ >= 0);
    return cliques_.check_invariants() && cuts_.check_invariants();
  }

 private:
  bool visit(std::int32_t position, Conflict* conflict);
  bool push(Half h, Conflict* conflict);
  bool settle(Half a, Conflict* conflict);
  bool close(Half a, Conflict* conflict);
  bool take_along(Half h, Conflict* conflict);
  bool settle_bodies(Half a, Conflict* conflict);
  bool raise(Half h, Bytes value, Reason reason, Conflict* conflict);
  // Whether the cheap rules have nothing to add: every bound is pushed on, groups are in step, and
  // clauses are settled.
  bool is_fixpoint() const;

  const Model& model_;
  const ProverOptions options_;
  Trail& trail_;
  Clauses& clauses_;
  Cliques cliques_;
  Cuts cuts_;
  std::int32_t next_ = 0;  // entry of the trail
  bool is_short_ = false;
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
