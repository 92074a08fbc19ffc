// The fixpoint of everything that follows from the trail without a decision.
#pragma once

#include <cstdint>
#include <vector>

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
  // A bound that may move others, or only the other end of an arc.
  struct Move {
    Bytes bound;  // of `source` when this was noted
    Half source;  // of an item
    Half target;  // of an item, or kAll
  };
  static constexpr Half kAll = -1;

  bool visit(std::int32_t position, Conflict* conflict);
  bool move_bounds(std::int64_t last, const Halt& halt, Conflict* conflict);
  bool push(Half h, Conflict* conflict);
  void settle(Half a);
  void note(Move move);
  static bool is_later(const Move& a, const Move& b);
  bool lift(Half h, Bytes value, Reason reason, Conflict* conflict);
  bool close(Half a, Conflict* conflict);
  static bool is_closed(std::int8_t of_u, std::int8_t of_v);
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
  std::int32_t next_ = 0;     // entry of the trail
  std::int32_t settled_ = 0;  // entries before this one have moved all that they move
  std::int32_t moved_ = 0;    // those before this one have moved other items
  std::vector<Move> moves_;   // a heap, the least bound first
  bool is_short_ = false;
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
