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
#define MEMPLAN_EXACT_OPTIONS(OPTION)                                                            \
  OPTION(bool, portfolio, true, "restarts over several branching rules")                         \
  OPTION(bool, release_dates, true, "a bound from the floors of a section's buffers")            \
  OPTION(bool, backjumping, true, "return through nodes that a conflict does not depend on")     \
  OPTION(bool, gap_jump, true, "raise an empty floor to the next level that can carry a buffer") \
  OPTION(bool, contraction, true, "drop sections that another one contains")                     \
  OPTION(bool, decomposition, true, "split at times that no buffer crosses")                     \
  OPTION(bool, nogoods, true, "remember refuted problems, compare by dominance")                 \
  OPTION(bool, twins, true, "identical buffers in one order only")                               \
  OPTION(bool, full_span, true, "buffers alive in every section go to the ceiling or the floor") \
  OPTION(bool, mirror, true, "half of the portfolio on the reversed time axis")                  \
  OPTION(bool, tiling, true, "full sections in a row: all address orders at once, by a PQ-tree")

struct ExactOptions {
  MEMPLAN_EXACT_OPTIONS(MEMPLAN_FIELD)
};

// Fit within `capacity`: kOptimal (it fits), kInfeasible (proved; `conflict` is filled), or
// kUnknown where the budget ran out. The answer does not depend on the number of threads.
Plan exact_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               const ExactOptions& options, std::int64_t node_budget, int threads,
               std::uint64_t seed, Stopper& stopper);

}  // namespace memplan
