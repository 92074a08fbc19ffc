// TelaMalloc's search (source 001, section 5): heuristics choose a block, propagation says where it
// can go and what is at fault when nothing can. Each technique is a switch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

class BacktrackPolicy;  // telamalloc/backtracking.h

// Sections and figures are those of source 001. The rules of figure 14 go back one step at a time,
// over all blocks, so that only lowest_position and subproblems apply to them. What is learned says
// where to go back to, in restarts that take turns with the rules of 5.4, for "tela" only.
#define MEMPLAN_TELAMALLOC_OPTIONS(OPTION)                                                         \
  OPTION(bool, lowest_position, true,                                                              \
         "at the lowest valid offset (off: on top of the skyline; 5.2)")                           \
  OPTION(bool, subproblems, true, "split at times that no buffer crosses (5.3)")                   \
  OPTION(bool, phases, true,                                                                       \
         "first within the phase of contention of the last block (5.3, figure 9)")                 \
  OPTION(bool, culprits, true,                                                                     \
         "go back to the second-to-last placement at fault (off: one step; 5.4)")                  \
  OPTION(bool, hoisting, true, "candidates of a point that failed come first further up (5.4)")    \
  OPTION(bool, bounded, true, "at most a few candidates at a point (5.4)")                         \
  OPTION(bool, stuck_rule, true, "leave a subtree after 100 backtracks in it (5.4)")               \
  OPTION(                                                                                          \
      std::string, select, "tela",                                                                 \
      "which block is next: tela (5.1), or one rule of figure 14: size, area, lifetime or lowest") \
  OPTION(std::shared_ptr<const BacktrackModel>, learned, nullptr,                                  \
         "restarts that go back to where a trained model says (6)")

struct TelamallocOptions {
  MEMPLAN_TELAMALLOC_OPTIONS(MEMPLAN_FIELD)
};

// Fit within `capacity`: kOptimal (it fits), kInfeasible (proved, by the load or by propagation
// before anything is placed; `conflict` is filled), or kUnknown: the budget ran out, or the search
// has tried all that it tries, which is no proof. A node is a step: one block placed. lower_bound
// is left for the caller. `policy` goes before the model. Throws std::invalid_argument for a
// `select` that is none of the above.
Plan telamalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const TelamallocOptions& options, std::int64_t node_budget, Stopper& stopper,
                BacktrackPolicy* policy = nullptr);

}  // namespace memplan
