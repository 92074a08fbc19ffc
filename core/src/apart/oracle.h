// Asks the planner whether some pairs can lie apart, and why they cannot.
#pragma once

#include <cstdint>
#include <vector>

#include "apart/model.h"
#include "memplan/plan.h"
#include "model/counter.h"

namespace memplan::apart {

class Oracle {
 public:
  Oracle(const Model& model, std::uint64_t seed, Counter& counter)
      : model_(model), seed_(seed), counter_(counter) {}

  // A plan in which the pairs lie apart; kInfeasible, with the rows that cannot be placed together,
  // only if there is none. Nodes limit the search.
  Plan fit(const Chosen& apart, std::int64_t nodes) { return ask(apart, nodes, {}, false); }
  // The same with the smallest peak that is found.
  Plan lowest(const Chosen& apart, std::int64_t nodes) { return ask(apart, nodes, {}, true); }

  // Of pairs that cannot all lie apart, as the rows cannot be placed together then: few that cannot
  // either. It is a deletion filter: a pair goes if the others suffice.
  Chosen shrink(const Chosen& apart, std::vector<BufferIdx> rows);

 private:
  Plan ask(const Chosen& apart, std::int64_t nodes, const std::vector<BufferIdx>& rows,
           bool is_lowest);

  const Model& model_;
  std::uint64_t seed_;
  Counter& counter_;
};

}  // namespace memplan::apart
