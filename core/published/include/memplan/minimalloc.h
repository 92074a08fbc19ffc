// The search of MiniMalloc as published (sections 5 to 7), each technique a switch.
#pragma once

#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Sections are those of MiniMalloc. Static orders are tried round robin, with node limits that
// double. Every part is sorted when it is cut off, where T counts only what is not placed yet.
#define MEMPLAN_MINIMALLOC_OPTIONS(OPTION)                                                        \
  OPTION(bool, canonical, true, "search only offset- and index-monotonic sequences (6.1)")        \
  OPTION(bool, section_inference, true,                                                           \
         "prune by the load that is still to be placed (6.2, equation 3)")                        \
  OPTION(bool, monotonic_floor, true, "keep no section floor below the last offset (6.2)")        \
  OPTION(bool, unallocated_floor, true,                                                           \
         "bound a section by what its unplaced buffers can reach (6.2)")                          \
  OPTION(bool, dominance, true, "skip offsets that leave room for another buffer below (6.3)")    \
  OPTION(bool, hatless, true, "try no alternatives for a buffer with nothing above it (7)")       \
  OPTION(bool, dynamic_ordering, true, "try the buffer with the lowest viable offset first (7)")  \
  OPTION(bool, static_ordering, true,                                                             \
         "sort by the orders, at the start and for each part after a split (7)")                  \
  OPTION(bool, dynamic_decomposition, true, "split at times that no unplaced buffer crosses (7)") \
  OPTION(Names, orders, Names({"WAT", "TAW", "TWA"}),                                             \
         "orders, tried in turn; keys: W width, A area, T total of the fullest section, Z size, " \
         "L lower, U upper, C sections, O overlaps (7)")

struct MiniMallocOptions {
  MEMPLAN_MINIMALLOC_OPTIONS(MEMPLAN_FIELD)
};

// Fit within `capacity`. kFits, kInfeasible (proved; `conflict` is filled), or
// kUnknown (stats.note says why). Problems with windowed gaps are called infeasible for their load
// only, never by search: the published pair relation is narrower than ours. lower_bound is left
// for the caller. Throws std::invalid_argument for an order with a letter that is no key.
Plan minimalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const MiniMallocOptions& options, std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
