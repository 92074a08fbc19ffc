// The proving engine: clause learning over the orders of pairs (docs/algorithms/prover.md).
#pragma once

#include "memplan/option.h"

namespace memplan {

// Each technique is a switch, so that an ablation is a table and not an edit. None changes an
// answer, only the number of conflicts it takes.
#define MEMPLAN_PROVER_OPTIONS(OPTION)                                                           \
  OPTION(bool, learning, true,                                                                   \
         "learn clauses from conflicts (off: backtrack to the last decision)")                   \
  OPTION(bool, minimisation, true,                                                               \
         "drop literals of a learned clause that the other literals imply")                      \
  OPTION(bool, lifting, true, "weaken explanations as far as possible")                          \
  OPTION(bool, set_bounds, true,                                                                 \
         "a buffer lies above the sum of the buffers that are decided to be below it")           \
  OPTION(bool, overload, true, "detect sets of a clique that do not fit between their bounds")   \
  OPTION(bool, edge_finding, true,                                                               \
         "a buffer that does not fit among a set lies above the whole set")                      \
  OPTION(bool, transitivity, true, "if a is below b and b is below c, then a is below c")        \
  OPTION(bool, cuts, true,                                                                       \
         "bounds from two times: buffers that are live at both count in full, above or below a " \
         "buffer")                                                                               \
  OPTION(bool, cut_sums, true, "cuts also look at the sums of undecided buffers")                \
  OPTION(bool, foundation, true, "place a buffer that conflicts with all others at the bottom")  \
  OPTION(bool, symmetry, true,                                                                   \
         "order interchangeable buffers by index, and fix the order of one pair")                \
  OPTION(bool, phases, true, "first decide a pair as in the best plan")                          \
  OPTION(bool, restarts, true, "restart the search from time to time, and keep the learned clauses")

struct ProverOptions {
  MEMPLAN_PROVER_OPTIONS(MEMPLAN_FIELD)
};

}  // namespace memplan
