// Learned clauses, watched by two literals each.
//
// A literal x >= v becomes false when the other half of x reaches a threshold. A clause is filed
// under that half, with the threshold: rises that stay below it, or began above it, do not visit
// the clause.
#pragma once

#include <cstdint>
#include <vector>

#include "prover/trail.h"

namespace memplan::prover {

class Clauses {
 public:
  Clauses(const Model& model, Trail& trail);

  // Takes in a clause of at least two literals: the first is about to become true, the second
  // was the last of the others to become false. `number`: its name in the proof.
  std::int32_t add(const std::vector<Literal>& literals, int glue, std::int64_t number);

  // All consequences of the rise of a half from `old` to its bound; false at a conflict.
  bool propagate(Half h, Bytes old, Conflict* conflict);

  // Drops the worse half (which spans many levels) of the clauses that are no reason now.
  void reduce();

  const Literal* begin(std::int32_t c) const { return literals_.data() + clauses_[c].first; }
  const Literal* end(std::int32_t c) const { return begin(c) + clauses_[c].size; }
  std::int64_t number(std::int32_t c) const { return clauses_[c].number; }
  int learned() const { return static_cast<int>(clauses_.size()); }
  void touch(std::int32_t c) { clauses_[c].used = true; }

  // Each clause has its own literals and a half only once, and is filed under its first two.
  bool check_invariants() const;
  // Whether no clause is false, and none that is not true yet has a single literal left.
  bool is_settled() const;
  std::int64_t steps() const { return steps_; }

 private:
  struct Clause {
    std::int64_t number;
    std::int32_t first;
    std::int32_t size;
    std::int32_t glue;  // levels that its literals were decided on
    bool used;          // in a conflict since the last reduction
  };
  struct Watch {
    Bytes threshold;
    Literal blocker;  // while it holds, so does the clause
    std::int32_t clause;
  };

  void watch(Literal watched, Literal other, std::int32_t clause);
  void rebuild(const std::vector<bool>& keep);

  const Model& model_;
  Trail& trail_;
  std::vector<Clause> clauses_;
  std::vector<Literal> literals_;
  std::vector<std::vector<Watch>> watches_;  // by the half whose rise makes the literal false
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
