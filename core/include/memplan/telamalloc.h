// TelaMalloc's search (source 001, section 5): heuristics choose a block, propagation says where it
// can go and what is at fault when nothing can. Each technique is a switch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

class BacktrackPolicy;  // telamalloc/backtracking.h
struct BacktrackModel;  // learning.h

struct TelamallocOptions {
  bool lowest_position = true;  // 5.2: at the lowest valid offset (off: on top of the skyline)
  bool subproblems = true;      // 5.3: split at times that no buffer crosses
  bool phases = true;           // 5.3: first within the phase of the block placed last
  bool culprits = true;         // 5.4: back to the second-to-last culprit (off: one step)
  bool hoisting = true;         // 5.4: candidates of a point that failed come first further up
  bool bounded = true;          // 5.4: no more than a few candidates at a point
  bool stuck_rule = true;       // 5.4: leave a subtree after 100 backtracks in it
  // Who is placed next: "tela", the candidates of 5.1, or one of the four strategies of figure 14,
  // "size", "area", "lifetime" or "lowest" (the block with the lowest valid offset). Those go back
  // one step at a time, over all blocks, so that only lowest_position and subproblems speak of
  // them.
  std::string select = "tela";
  // Says where to go back to (6), in restarts that take turns with the rules (telamalloc/turns.h),
  // for "tela" only; null: always by the rules of 5.4.
  std::shared_ptr<const BacktrackModel> model;
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
