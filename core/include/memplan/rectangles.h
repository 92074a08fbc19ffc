// The two formulations of rectangle packing that source 000 compares with (sections 2.2 and 8), cut
// down to fixed times as it says: only offsets are left to be found. Baselines; each technique is a
// switch.
#pragma once

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Each buffer is a variable, with all legal offsets as values, from the lowest up (Korf 2003; Huang
// and Korf 2013). Buffers are placed in one order, with plain backtracking.
#define MEMPLAN_CSP_OPTIONS(OPTION)                                                       \
  OPTION(bool, area_order, true, "largest size times lifetime first (off: as they come)") \
  OPTION(bool, forward_checking, true, "every buffer that is not placed keeps an offset") \
  OPTION(bool, wasted_space, true,                                                        \
         "bin packing, section by section: a free run counts only for what is no larger") \
  OPTION(bool, dominance, true, "no strip at the floor that nothing can fill (Korf 2004)")

struct CspOptions {
  MEMPLAN_CSP_OPTIONS(MEMPLAN_FIELD)
};

// Each pair of buffers that share a time is a variable, with the values "below" and "above"
// (Moffitt and Pollack 2006). What the chosen values imply is kept as a matrix of distances between
// offsets.
//
// Semantic branching, which adds the negation of a value that failed, is no switch: for two buffers
// that share a time, the other value implies it.
#define MEMPLAN_META_CSP_OPTIONS(OPTION)                                                         \
  OPTION(bool, forward_checking, true, "drop above or below once the distances contradict it")   \
  OPTION(bool, fewest_first, true, "a pair with one value left is next; needs forward_checking") \
  OPTION(bool, area_order, true,                                                                 \
         "then the pairs of the largest buffer, and so on (off: as they come)")                  \
  OPTION(bool, subsumption, true, "pairs that the distances order already need no value")        \
  OPTION(bool, cliques, true, "the buffers below one at a time need the sum of their sizes")     \
  OPTION(bool, symmetry, true, "the first pair has one value, where top and bottom are alike")

struct MetaCspOptions {
  MEMPLAN_META_CSP_OPTIONS(MEMPLAN_FIELD)
};

// Both fit within `capacity`: kOptimal (it fits), kInfeasible (proved; `conflict` is filled), or
// kUnknown (stats.note says why). A node is a value given to a variable. lower_bound is left for
// the caller. They are for problems without windows, conflicts and groups.
Plan csp(const Problem& problem, const Sections& sections, Bytes capacity,
         const CspOptions& options, std::int64_t node_budget, Stopper& stopper);
Plan meta_csp(const Problem& problem, const Sections& sections, Bytes capacity,
              const MetaCspOptions& options, std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
