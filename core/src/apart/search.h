// The search for a cheapest plan that can prove what it finds: rows, covers and the planner in
// turn.
//
//     cover of all rows so far  -->  pairs that may meet, and a bound
//              ^                              |
//              |  load rows, cores            v
//              +--------------------  cliques above the room, then the planner: do the others fit
//                                     apart? Yes: a plan at the bound, or near it. No: a row more.
#pragma once

#include <cstdint>
#include <vector>

#include "apart/model.h"
#include "model/counter.h"

namespace memplan::apart {

struct Found {
  std::vector<Bytes> offsets;       // of the cheapest plan below the limit; empty without one
  std::int64_t cost = 0;            // of the plan, in units; the limit without one
  std::int64_t bound = 0;           // proved, at most the cost: no plan costs less
  bool is_infeasible = false;       // proved: there is no plan, at whatever cost
  std::vector<BufferIdx> conflict;  // of that: rows that cannot be placed together

  bool is_proved() const { return bound >= cost; }
};

// Looks for a plan that costs less than the limit, until it is proved to be the cheapest, or no
// more rows are found with the nodes. It is known that no plan costs less than the floor.
Found search(const Model& model, std::int64_t floor, std::int64_t limit, std::uint64_t seed,
             Counter& counter);

}  // namespace memplan::apart
