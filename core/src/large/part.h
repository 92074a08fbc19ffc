// A part of a problem: the exact search places it again, or, for a core, first fit where that is
// enough, as it is fast.
#pragma once

#include <cstdint>
#include <vector>

#include "greedy/first_fit.h"
#include "greedy/passes.h"
#include "large/ranking.h"
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

// The nodes that a search needs if it meets little resistance. Where it takes many more, another
// part is a better use of the time.
std::int64_t nodes_of_descent(const Part& part);

// Fits the part below `capacity`. Offsets are by row of the part. Returns kUnknown where that is
// too much work, or where the search does not suit the part.
Plan fit_part(const Part& part, Bytes capacity, const Effort& effort, std::uint64_t seed,
              Stopper& stopper);

// When passes over a part are given up. One pass is made in any case.
struct Patience {
  int passes = 1;
  std::int64_t steps = 0;  // of work, all together
  std::int64_t nodes = 0;  // placements, all together
};

// Runs first fit on a part again and again, each time with what it rejected ranked higher.
class PartPacker {
 public:
  // Both must outlive it.
  PartPacker(const Part& part, Stopper& stopper);

  // Returns the pass that rejected the fewest, with the work of all passes. The offsets are by row
  // of the part; the rejected, which stay without a place, are buffers of the whole. `fixed`: by
  // buffer of the whole, or empty.
  Packing pack(const std::vector<Bytes>& fixed, Bytes goal, const Patience& patience,
               Ranking* ranking);

 private:
  std::vector<BufferIdx> ranked_rows(const Ranking& ranking);

  const Part& part_;
  Stopper& stopper_;
  Sections sections_;
  FirstFit first_fit_;
};

struct PlacedCore {
  std::vector<Bytes> offsets;  // by row of the part; kNoOffset for those that found no place
  bool whole = false;          // every row found a place
  bool refuted = false;        // proved: the part does not fit, so neither does the whole problem
  std::int64_t nodes = 0;      // spent, placements and search
};

// Places the part below `goal`: by first fit, or else by the exact search. Without success, it
// returns the pass that rejected the fewest. `search.nodes` is for both together.
PlacedCore place_core(const Part& part, Bytes goal, const Patience& patience, const Effort& search,
                      std::uint64_t seed, Ranking* ranking, Stopper& stopper);

}  // namespace memplan::chain
