// Derives a clause from a conflict: it resolves backwards along the trail up to the first unique
// implication point, and then drops the literals that the others imply.
//
// With bounds, one half may be needed at several values. The greatest need stands for all of
// them, at the first entry that satisfies it.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/prover.h"
#include "prover/clauses.h"
#include "prover/explainer.h"
#include "prover/order.h"
#include "prover/proof_log.h"
#include "prover/trail.h"

namespace memplan::prover {

class Analysis {
 public:
  // `log` may be null.
  Analysis(const Model& model, const ProverOptions& options, const Trail& trail, Clauses& clauses,
           Order& order, ProofLog* log);

  // Returns false if the conflict follows from facts alone. Otherwise clause() is what was learned:
  // after a return to backjump_level() its first literal follows from the others.
  bool learn(const Conflict& conflict);

  const std::vector<Literal>& clause() const { return clause_; }
  int backjump_level() const { return backjump_level_; }
  int glue() const { return glue_; }
  std::int64_t number() const { return number_; }  // of the clause in the proof

  // Writes the entries of level 0 from `begin` on into the log, each as a clause of its own.
  void log_facts(std::int32_t begin);
  std::int64_t steps() const { return steps_; }

  // Between conflicts no need and no mark is left.
  bool check_invariants() const;
  // Whether the learned clause is false now, with only one literal of the level of the conflict.
  bool is_asserting() const;

 private:
  // A half of which some value is needed.
  struct Need {
    Bytes value = 0;
    std::int32_t position = kNowhere;  // of the first entry that satisfies it
  };
  struct Line {
    std::int32_t position = 0;
    std::int32_t clause = -1;  // used whole, or else
    Literal conclusion;        // (half -1: a contradiction)
    std::vector<Literal> premises;
  };

  void require(Literal literal);
  void resolve_to_first_uip(const Conflict& conflict);
  const std::vector<Literal>& reason(std::int32_t position);
  void minimise();
  bool implied_by_the_rest(std::int32_t position);
  void assemble();
  void note(std::int32_t position, std::int32_t clause, Literal conclusion,
            const std::vector<Literal>& premises);
  void note_conflict(const Conflict& conflict, std::vector<Literal> premises);
  void write(const std::vector<Literal>& clause);

  static constexpr std::int32_t kNowhere = -1;

  const Model& model_;
  const ProverOptions options_;
  const Trail& trail_;
  Clauses& clauses_;
  Order& order_;
  ProofLog* log_;
  Explainer explainer_;

  std::vector<Need> needs_;          // by half
  std::vector<char> marked_;         // by position: some need is satisfied there
  std::vector<std::int32_t> below_;  // positions on lower levels that were marked, some no more
  int level_ = 0;                    // of the conflict
  int open_ = 0;                     // marks on that level
  std::int32_t uip_ = 0;             // position
  std::vector<std::int32_t> kept_;   // positions of the learned clause, but for the uip
  std::vector<Literal> clause_;
  std::vector<std::int32_t> level_seen_;  // by level: the last conflict that met it
  std::int32_t conflicts_ = 0;
  int backjump_level_ = 0;
  int glue_ = 0;
  std::int64_t number_ = 0;
  std::vector<Line> lines_;
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
