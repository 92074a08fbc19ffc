// How a core is placed: quickly if it can be, by the exact search if it must.
#pragma once

#include <cstdint>
#include <vector>

#include "greedy/passes.h"
#include "large/part.h"
#include "large/ranking.h"
#include "memplan/budget.h"

namespace memplan::chain {

// When passes over a part are given up. One is made in any case.
struct Patience {
  int passes = 1;
  std::int64_t steps = 0;  // of work, all together
  std::int64_t nodes = 0;  // placements, all together
};

// First fit of a part, again and again with what it rejects ranked higher.
class PartPacker {
 public:
  // Both must outlive it.
  PartPacker(const Part& part, Stopper& stopper);

  // The pass that rejected the fewest, with the work of all. The offsets are by row of the part;
  // the rejected, which stay without a place, are buffers of the whole. `fixed`: by buffer of the
  // whole, or empty.
  Packing pack(const std::vector<Bytes>& fixed, Bytes goal, const Patience& patience,
               Ranking* ranking);

 private:
  std::vector<BufferIdx> ranked_rows(const Ranking& ranking);

  const Part& part_;
  Stopper& stopper_;
  Sections sections_;
  Passes passes_;
};

struct PlacedCore {
  std::vector<Bytes> offsets;  // by row of the part; kNoOffset for those that found no place
  bool whole = false;          // all did
  bool refuted = false;        // proved: they cannot, so nor can the whole problem
  std::int64_t nodes = 0;      // spent, placements and search
};

// Places the part below `goal`: by first fit, or else by the exact search. Without success, the
// pass that rejected the fewest is the answer. `search.nodes` is for both together.
PlacedCore place_core(const Part& part, Bytes goal, const Patience& patience, const Effort& search,
                      std::uint64_t seed, Ranking* ranking, Stopper& stopper);

}  // namespace memplan::chain
