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
#define MEMPLAN_LARGE_OPTIONS(OPTION)                                                           \
  OPTION(bool, core, true,                                                                      \
         "the buffers of the tightest sections first, grown by what is rejected")               \
  OPTION(bool, promote, true, "first fit of a core again, with the rejected ranked as tighter") \
  OPTION(bool, shells, true, "around a core, try what is nearly as tight before all the rest")  \
  OPTION(bool, portfolio, true, "first-fit passes over many orders at the target")              \
  OPTION(bool, bump, true, "repeat a pass with the rejected at the front of its order")         \
  OPTION(bool, best_fit, true, "best fit for some orders, after first fit")                     \
  OPTION(bool, windows, true,                                                                   \
         "place stretches of time around the rejected again, their surroundings pinned")        \
  OPTION(bool, ejection, true,                                                                  \
         "with conflicts or groups, in place of cores and windows: the rejected throw others "  \
         "out, which move in turn")

struct LargeOptions {
  MEMPLAN_LARGE_OPTIONS(MEMPLAN_FIELD)
  // Stop at the first plan whose peak is at or below this (the lower bound, or the capacity).
  Bytes target = 0;
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
