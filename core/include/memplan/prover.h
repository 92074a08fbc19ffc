// The proving engine: clause learning over the orders of pairs (docs/algorithms.md, "The prover").
#pragma once

#include "memplan/option.h"

namespace memplan {

// Each technique is a switch, so that an ablation is a table and not an edit. None changes an
// answer, only the number of conflicts it takes.
#define MEMPLAN_PROVER_OPTIONS(OPTION)                                                            \
  OPTION(bool, learning, true,                                                                    \
         "clauses from conflicts (off: plain backtracking on the last decision)")                 \
  OPTION(bool, minimisation, true, "drop literals of a learned clause that the others imply")     \
  OPTION(bool, lifting, true, "weaken explanations as far as their use allows")                   \
  OPTION(bool, set_bounds, true, "a buffer is above the sum of what is decided to lie below it")  \
  OPTION(bool, overload, true, "a set of a clique does not fit between its bounds")               \
  OPTION(bool, edge_finding, true, "a buffer that does not fit among a set lies above all of it") \
  OPTION(bool, transitivity, true, "if a is below b, and b below c, then a is below c")           \
  OPTION(bool, cuts, true,                                                                        \
         "of two times: what lives at both counts in full, above or below a buffer")              \
  OPTION(bool, foundation, true, "a buffer that conflicts with all others goes to the bottom")    \
  OPTION(bool, symmetry, true, "interchangeable buffers go by index; one pair has a fixed order") \
  OPTION(bool, phases, true, "decide a pair first as it is in the best plan")                     \
  OPTION(bool, restarts, true, "start the search again now and then, and keep what was learned")

struct ProverOptions {
  MEMPLAN_PROVER_OPTIONS(MEMPLAN_FIELD)
};

}  // namespace memplan
