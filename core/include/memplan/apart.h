// Sharing that costs: which buffers should lie apart, though they are never needed together?
//
// Two buffers that share addresses tie what uses them to an order, so that work which could run
// side by side waits. A penalty says what that costs for one pair:
//
//   address
//     C +------------------------------+    a and c share addresses, which costs their penalty;
//       |  +--a--+            +--c--+  |    b and d would cost theirs, but lie apart.
//       |  +-----+--b--+      +-----+  |
//     0 +--------+-----+--d--+---------+    The capacity decides how much has to be shared.
//
// The cost of a plan is the sum of the penalties of all pairs whose addresses meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/types.h"

namespace memplan {

struct Penalty {
  BufferIdx first = 0;
  BufferIdx second = 0;
  std::int64_t cost = 0;  // from 0 on; the sum of all is below 2^53
};

// One sentence on what is wrong, or an empty string. The functions below throw it as
// std::invalid_argument.
std::string check(const Problem& problem, const std::vector<Penalty>& penalties);

// What a plan costs.
std::int64_t cost_of(const Problem& problem, const std::vector<Penalty>& penalties,
                     const std::vector<Bytes>& offsets);

// The search runs in one thread, and all that it draws by chance is the same on every machine: the
// same budget in nodes gives the same answer.
struct ApartOptions {
  Budget budget;  // nodes: of all searches together, each about a microsecond
  std::uint64_t seed = 0;
  Stopper::Interrupt interrupt;
};

struct ApartResult {
  Status status = Status::kUnknown;  // kOptimal: the cost is the bound
  std::vector<Bytes> offsets;        // empty if no plan was found
  std::int64_t cost = 0;             // of the plan
  std::int64_t bound = 0;            // proved: no plan costs less
  Bytes peak = 0;                    // of the plan
  Bytes peak_bound = 0;              // proved: no plan of at most this cost has a smaller peak
  std::vector<BufferIdx> conflict;   // of kInfeasible: buffers that cannot be placed together
  std::int64_t nodes = 0;
  bool interrupted = false;
};

// A plan within the capacity that costs as little as it can, and of those the one with the smallest
// peak that is found. The problem must have a capacity.
ApartResult plan_apart(const Problem& problem, const std::vector<Penalty>& penalties,
                       const ApartOptions& options = {});

}  // namespace memplan
