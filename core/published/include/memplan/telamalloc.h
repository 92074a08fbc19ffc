// TelaMalloc's search (section 5): heuristics choose a block, propagation says where it
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

struct BacktrackModel;  // learning.h
class BacktrackPolicy;  // telamalloc/backtracking.h
class SearchPolicy;     // policy.h

// Sections and figures are those of TelaMalloc. The rules of figure 14 go back one step at a time,
// over all blocks, so that only lowest_position and subproblems apply to them. `learned` is for
// "tela" only. A policy takes the place of all rules: of the other options only subproblems
// applies.
#define MEMPLAN_TELAMALLOC_OPTIONS(OPTION)                                                         \
  OPTION(bool, lowest_position, true,                                                              \
         "place at the lowest valid offset (off: on top of the skyline; 5.2)")                     \
  OPTION(bool, subproblems, true, "split the problem at times that no buffer crosses (5.3)")       \
  OPTION(bool, phases, true,                                                                       \
         "look first within the contention phase of the last block (5.3, figure 9)")               \
  OPTION(bool, culprits, true,                                                                     \
         "backtrack to the second-to-last placement at fault (off: one step; 5.4)")                \
  OPTION(bool, hoisting, true,                                                                     \
         "try the candidates of a failed point first at the point above (5.4)")                    \
  OPTION(bool, bounded, true, "try only a few candidates at a point (5.4)")                        \
  OPTION(bool, stuck_rule, true, "leave a subtree after 100 backtracks in it (5.4)")               \
  OPTION(bool, published, false,                                                                   \
         "candidates, reasons of failure and stuck subtrees exactly as printed (5.1 to 5.4)")      \
  OPTION(std::string, select, "tela",                                                              \
         "how the next block is chosen: tela (5.1), or a rule of figure 14: size, area, lifetime " \
         "or lowest")                                                                              \
  OPTION(std::string, learned, "off",                                                              \
         "on: beside it, a search that restarts and learns from its dead ends what to place "      \
         "first; published: a trained model says where to go back to (6)")                         \
  OPTION(std::shared_ptr<const BacktrackModel>, model, nullptr, "the model of learned=published")  \
  OPTION(std::shared_ptr<SearchPolicy>, policy, nullptr,                                           \
         "ask an object of the caller for each step (4); only from Python and C++")

struct TelamallocOptions {
  MEMPLAN_TELAMALLOC_OPTIONS(MEMPLAN_FIELD)
};

// Fit within `capacity`: kFits, kInfeasible (proved, by the load or by propagation
// before anything is placed; `conflict` is filled), or kUnknown: the budget ran out, or the search
// has tried all that it tries, which is no proof. A node is a step: one block placed. lower_bound
// is left for the caller. `policy` goes before `learned`. Throws std::invalid_argument for a
// `select` or `learned` that is none of the above, and for learned=published without a model; and
// what policy.h says.
Plan telamalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const TelamallocOptions& options, std::int64_t node_budget, Stopper& stopper,
                BacktrackPolicy* policy = nullptr);

}  // namespace memplan
