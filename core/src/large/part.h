// A part of a problem, which the exact search places again.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"

namespace memplan::chain {

struct Part {
  std::vector<BufferIdx> rows;  // row i of `problem` is buffer rows[i] of the whole
  Problem problem;              // without hints and capacity
};

// The buffers `rows` (rising), with all their constraints.
Part take_part(const Problem& problem, std::vector<BufferIdx> rows);

// How much work a part is worth. A node of the search makes a visit to every section of every
// buffer.
struct Effort {
  std::int64_t visits = 0;
  std::int64_t nodes = 0;
};

// Fits the part below `capacity`. Offsets are by row of the part. Returns kUnknown where that is
// too much work, or where the search does not suit the part.
Plan fit_part(const Part& part, Bytes capacity, const Effort& effort, std::uint64_t seed,
              Stopper& stopper);

}  // namespace memplan::chain
