// The two formulations of rectangle packing that MiniMalloc compares with (sections 2.2 and 8), cut
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
#define MEMPLAN_CSP_OPTIONS(OPTION)                                                             \
  OPTION(bool, area_order, true,                                                                \
         "place the largest size times lifetime first (off: in the given order)")               \
  OPTION(bool, forward_checking, true, "backtrack when an unplaced buffer has no offset left")  \
  OPTION(bool, wasted_space, true,                                                              \
         "prune by bin packing in each section: a free range counts only for buffers that fit " \
         "into it")                                                                             \
  OPTION(bool, dominance, true, "leave no strip at the bottom that no buffer can fill (Korf 2004)")

struct CspOptions {
  MEMPLAN_CSP_OPTIONS(MEMPLAN_FIELD)
};

// Each pair of buffers that share a time is a variable, with the values "below" and "above"
// (Moffitt and Pollack 2006). What the chosen values imply is kept as a matrix of distances between
// offsets.
//
// Semantic branching, which adds the negation of a value that failed, is no switch: for two buffers
// that share a time, the other value implies it.
#define MEMPLAN_META_CSP_OPTIONS(OPTION)                                                     \
  OPTION(bool, forward_checking, true,                                                       \
         "drop `above` or `below` of a pair as soon as the distances contradict it")         \
  OPTION(bool, fewest_first, true,                                                           \
         "decide pairs with one value left first; needs forward_checking")                   \
  OPTION(bool, area_order, true,                                                             \
         "then decide the pairs of the largest buffer, and so on (off: in the given order)") \
  OPTION(bool, subsumption, true, "skip pairs that the distances already order")             \
  OPTION(bool, cliques, true,                                                                \
         "buffers below another one that are live together need the sum of their sizes")     \
  OPTION(bool, symmetry, true, "fix the first pair if top and bottom are symmetric")

struct MetaCspOptions {
  MEMPLAN_META_CSP_OPTIONS(MEMPLAN_FIELD)
};

// Both fit within `capacity`: kFits, kInfeasible (proved; `conflict` is filled), or
// kUnknown (stats.note says why). A node is a value given to a variable. lower_bound is left for
// the caller. They are for problems without windows, conflicts and groups.
Plan csp(const Problem& problem, const Sections& sections, Bytes capacity,
         const CspOptions& options, std::int64_t node_budget, Stopper& stopper);
Plan meta_csp(const Problem& problem, const Sections& sections, Bytes capacity,
              const MetaCspOptions& options, std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
