// The chain for large problems: portfolio, critical core, windows.
#pragma once

#include <cstdint>
#include <functional>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/round.h"
#include "memplan/sections.h"

namespace memplan {

// Each stage is a switch. One pass of first fit is made in any case.
#define MEMPLAN_LARGE_OPTIONS(OPTION)                                                             \
  OPTION(bool, core, true,                                                                        \
         "place the buffers of the tightest sections first, and add the rejected ones to them")   \
  OPTION(bool, promote, true,                                                                     \
         "repeat first fit of the core with the rejected buffers ranked as tighter")              \
  OPTION(bool, shells, true, "after a core, place the nearly as tight buffers before the others") \
  OPTION(bool, portfolio, true,                                                                   \
         "try first fit at the target with many orders, and passes as low as they come")          \
  OPTION(bool, bump, true, "repeat a pass with the rejected buffers at the front of its order")   \
  OPTION(bool, best_fit, true, "after first fit, try best fit for some orders")                   \
  OPTION(bool, windows, true,                                                                     \
         "replan short time windows around the rejected buffers, with everything else pinned")    \
  OPTION(bool, ejection, true,                                                                    \
         "what reaches above a goal displaces other buffers, which move in turn")

struct LargeOptions {
  MEMPLAN_LARGE_OPTIONS(MEMPLAN_FIELD)
  // Stop at the first plan whose peak is at or below this (the lower bound, or the capacity).
  Bytes target = 0;
  // Aim at the target, but stop at the first plan within the capacity, which the problem must have.
  bool fit = false;
};

// The best plan: kFeasible, or kUnknown where none fits the capacity (and the pins and reserved
// ranges). lower_bound is what was refuted on the way, or 0. Anytime: `improved` is called with
// every plan that is better than all before, `trace` with every round (both may be empty).
// `sections` must be contracted.
Plan large(const Problem& problem, const Sections& sections, const LargeOptions& options,
           std::int64_t node_budget, std::uint64_t seed, Stopper& stopper,
           const std::function<void(const Plan&)>& improved = nullptr,
           const Tracer& trace = nullptr);

}  // namespace memplan
