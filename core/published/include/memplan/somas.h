// The offset assignment of SOMAS, as published: Single Object and Many Objects.
#pragma once

#include <cstdint>
#include <string>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Single Object (Algorithm 6): every block into the arena. Many Objects (Algorithm 7): objects side
// by side, each as large as the block that began it, every other one wholly inside of one.
#define MEMPLAN_SOMAS_OPTIONS(OPTION)                                                         \
  OPTION(std::string, objects, "single", "single (SOMAS, Algorithm 6) or many (Algorithm 7)") \
  OPTION(std::string, sort, "size",                                                           \
         "which block is placed first: size, breadth, source or unsafe (SOMAS, 5.2)")         \
  OPTION(std::string, fit, "first",                                                           \
         "where a block is placed: first (the lowest gap) or best (the smallest gap)")

struct SomasOptions {
  MEMPLAN_SOMAS_OPTIONS(MEMPLAN_FIELD)
};

// A pair is unsafe if its lifetimes meet (outside gaps) or if it is listed in the conflicts; a
// block is a buffer, or a contiguous group. Returns kFeasible, or kUnknown where the budget ran out
// or the plan ends above the capacity, which the algorithms do not consider. Quadratic in the
// number of buffers. Throws std::invalid_argument for options that are not among those above, and
// for pins, alignments, reserved ranges and windows, which the source does not define.
Plan somas(const Problem& problem, const Sections& sections, const SomasOptions& options,
           std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
