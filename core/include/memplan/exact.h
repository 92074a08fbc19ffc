// The exact search: feasibility at a capacity, with proof either way.
#pragma once

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Each technique is a switch, so that an ablation is a table and not an edit. None changes an
// answer, only the number of nodes it takes.
#define MEMPLAN_EXACT_OPTIONS(OPTION)                                                    \
  OPTION(bool, portfolio, true, "restart the search with several branching rules")       \
  OPTION(bool, release_dates, true,                                                      \
         "compute a bound from the lowest offsets of the buffers in a section")          \
  OPTION(bool, backjumping, true, "skip the nodes that a conflict does not depend on")   \
  OPTION(bool, gap_jump, true,                                                           \
         "raise an empty floor to the next level at which a buffer can rest")            \
  OPTION(bool, contraction, true, "drop sections that are contained in another one")     \
  OPTION(bool, decomposition, true, "split the problem at times that no buffer crosses") \
  OPTION(bool, nogoods, true, "remember refuted subproblems and compare by dominance")   \
  OPTION(bool, twins, true, "place identical buffers in one order only")                 \
  OPTION(bool, full_span, true,                                                          \
         "place buffers that are live in every section at the bottom or the top")        \
  OPTION(bool, mirror, true, "run half of the portfolio on the reversed time axis")      \
  OPTION(bool, tiling, true,                                                             \
         "handle all address orders of adjacent full sections at once, with a PQ-tree")

struct ExactOptions {
  MEMPLAN_EXACT_OPTIONS(MEMPLAN_FIELD)
};

// Fit within `capacity`: kFits, kInfeasible (proved; `conflict` is filled), or
// kUnknown where the budget ran out. The answer does not depend on the number of threads.
Plan exact_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               const ExactOptions& options, std::int64_t node_budget, int threads,
               std::uint64_t seed, Stopper& stopper);

}  // namespace memplan
