// The search of MiniMalloc as published (source 000, sections 5 to 7), each technique a switch.
#pragma once

#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

struct MiniMallocOptions {
  bool canonical = true;              // 6.1: only offset- and index-monotonic sequences
  bool section_inference = true;      // 6.2: equation 3
  bool monotonic_floor = true;        // 6.2: no section floor below the last offset
  bool unallocated_floor = true;      // 6.2: effective height of a section
  bool dominance = true;              // 6.3: o_i < h_min
  bool hatless = true;                // 7: a buffer with nothing overhead has no alternatives
  bool dynamic_ordering = true;       // 7: lowest viable offset first
  bool static_ordering = true;        // 7: sort by the orders below
  bool dynamic_decomposition = true;  // 7: split where no unallocated buffer crosses
  // Static orders tried round robin, with node limits that double: keys W(idth), A(rea),
  // T(otal of the fullest section), Z (size), L(ower), U(pper), C (sections), O(verlaps).
  // Every part is sorted when it is cut off, and T counts what is unplaced then.
  std::vector<std::string> orders = {"WAT", "TAW", "TWA"};
};

// Fit within `capacity`. kOptimal (it fits), kInfeasible (proved; `conflict` is filled), or
// kUnknown (stats.note says why). Problems with windowed gaps are called infeasible for their load
// only, never by search: the published pair relation is narrower than ours. lower_bound is left
// for the caller. Throws std::invalid_argument for an order with a letter that is no key.
Plan minimalloc(const Problem& problem, const Sections& sections, Bytes capacity,
                const MiniMallocOptions& options, std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
