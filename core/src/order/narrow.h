// Which operators must run before which, in every order whose peak is within a limit.
//
// If the minimum cut of v with u on the side of what has run exceeds the limit, v runs before u;
// if it does with u on the side of what has still to run, u runs before v. Each such arc makes the
// cuts of others larger. A limit that leads to a contradiction is below every peak.
#pragma once

#include <utility>
#include <vector>

#include "model/counter.h"
#include "order/program.h"

namespace memplan::order {

class Narrowing {
 public:
  Narrowing(const Program& program, Bytes limit);

  enum class End { kRefuted, kNarrowed, kSpent };

  // Visits all operators, in the order that is given, until no more arcs are found; or until so
  // many flows were computed, which are taken from `flows`.
  End run(const std::vector<OperatorIdx>& operators, std::int64_t& flows, Counter& counter);

  // With the arcs so far: every order that is within the limit is one of this program.
  const Program& program() const { return program_; }
  bool has_arcs() const { return has_arcs_; }
  // Every order within the limit needs at least so much.
  Bytes bound() const { return bound_; }

 private:
  using Arcs = std::vector<std::pair<OperatorIdx, OperatorIdx>>;

  bool visit(OperatorIdx op, std::int64_t& flows, Counter& counter, Arcs& arcs);
  bool add(const Arcs& arcs);

  Program program_;
  Bytes limit_;
  Bytes bound_ = 0;
  bool has_arcs_ = false;
  std::vector<OperatorIdx> order_;  // a legal one
};

}  // namespace memplan::order
