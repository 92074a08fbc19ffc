// Subproblems, and the phases of high contention within them (TelaMalloc, section 5.3).
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/problem.h"
#include "model/items.h"
#include "published/telamalloc/adjacency.h"

namespace memplan {

// Figure 9, for one subproblem. Contention is the load of a section.
//
//   100 %  |                         A threshold sinks from the capacity. Items that overlap a
//          |     ###                 stretch of time that has reached it, and that are in no phase
//    75 %  |-A- #####  - -  -B- -    yet, become a phase: here first those of A, then, at a lower
//          |   #######   ######      threshold, those of B.
//          |  ###################
//          +----------------------
struct Phases {
  struct Subproblem {
    std::int32_t begin = 0;
    std::int32_t end = 0;  // its items are items[begin .. end), ascending
    std::int32_t phase_begin = 0;
    std::int32_t phase_end = 0;  // its phases, in order of decreasing contention

    std::int32_t size() const { return end - begin; }
  };
  std::vector<Subproblem> subproblems;  // by time
  std::vector<ItemIdx> items;           // by subproblem; without those that conflict with none
  std::vector<std::int32_t> phase_of;   // by item; -1 for those
  std::vector<Bytes> contention;        // by item: the greatest load while it lives
  std::int32_t count = 0;
};

// Where an option is off, there is one subproblem for all items, or one phase for each subproblem.
Phases make_phases(const Problem& problem, const Items& items, const Adjacency& adjacent,
                   bool subproblems, bool phases);

}  // namespace memplan
