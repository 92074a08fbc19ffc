// Premises: which earlier literals imply a literal, or a conflict.
//
// They are found when conflict analysis asks, for as much of a bound as it needs, so that each
// comes out as weak as it may be. Weak premises became true early, and make strong clauses.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/prover.h"
#include "prover/clauses.h"
#include "prover/trail.h"

namespace memplan::prover {

class Explainer {
 public:
  Explainer(const Model& model, const ProverOptions& options, const Trail& trail,
            const Clauses& clauses);

  // The premises of `needed`, which the entry at `position` made true, by the rule that made it.
  // All of them hold before that entry. Valid until the next call.
  const std::vector<Literal>& explain(std::int32_t position, Literal needed);
  // Premises that cannot hold together.
  const std::vector<Literal>& explain(const Conflict& conflict);

 private:
  void require(Half h, Bytes value);
  void require_pair(Half a, Bytes a_bound, Half b, Bytes b_bound, Bytes sum);
  void clause(std::int32_t index, Half implied);
  void too_late(Half a, int direction);
  void set_bound(Half h, Bytes value, std::int32_t clique);
  void edge(Half a, const Window& window);
  void cut(std::int32_t index, int direction, int item, int other);
  void cut_sums(std::int32_t index, int item, Half conclusion);
  void overload(const Window& window);
  void window_load(const Window& window, int outsider, int kept);
  // Whether all premises held before the entry that they explain.
  bool premises_hold() const;

  const Model& model_;
  const ProverOptions options_;
  const Trail& trail_;
  const Clauses& clauses_;
  std::int32_t position_ = 0;  // premises hold before it
  std::vector<Literal> premises_;

  struct Member {
    std::int32_t item;
    Bytes start;
    Bytes end;
  };
  std::vector<Member> members_;
};

}  // namespace memplan::prover
