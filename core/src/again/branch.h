// The bound of one moment in whole numbers: the best price, and branching on what the cut leaves
// undecided.
#pragma once

#include <cstdint>
#include <vector>

#include "again/cut.h"
#include "model/counter.h"

namespace memplan::again {

// One case: its decisions, and the best price that was found for it.
struct Case {
  std::vector<Decision> decisions;
  std::int64_t price = 0;
  std::int64_t bound = 0;  // in units
  Decision next;           // what to decide next, one way; op -1: it is whole
};

// What a solution of one moment runs again or moves, which fits at that moment.
struct Pick {
  std::int64_t cost = 0;            // in units
  std::vector<std::uint8_t> again;  // by run
  std::vector<std::uint8_t> done;   // by operator; empty: no solution is known
};

struct Branched {
  std::int64_t bound = 0;  // in units; above Model::total if nothing fits
  std::vector<Case> leaves;
  Pick best;
};

// Bounds the price function of the whole moment alone: one case, no decisions.
Branched bound_root(const Model& model, CutNetwork& network, const Scaling& scaling, Bytes capacity,
                    std::int64_t enough, Counter& counter);

// Goes on from a root until the bound is `enough` (in units), the best solution of the moment is
// met, so many cases are open, or the budget is spent.
void branch(const Model& model, CutNetwork& network, const Scaling& scaling, Bytes capacity,
            std::int64_t enough, std::size_t most_cases, Counter& counter, Branched& root);

// The flows of all cases.
RecomputeProof make_proof(const Model& model, CutNetwork& network, const Scaling& scaling,
                          Bytes capacity, OperatorIdx op, const std::vector<Case>& leaves);

}  // namespace memplan::again
