// First fit (or best fit) below a target, with a second chance for what it rejects.
#pragma once

#include <vector>

#include "greedy/occupancy.h"
#include "greedy/passes.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan::chain {

struct Goal {
  Bytes target = 0;         // what does not fit below is rejected and placed at the end,
  Bytes limit = kMaxBytes;  // below this
  std::int64_t steps = 0;   // the work after which a pass is given up
  std::int64_t nodes = 0;   // placements
};

struct Packing {
  std::vector<Bytes> offsets;       // kNoOffset where not placed
  std::vector<BufferIdx> rejected;  // in the order in which they came
  Bytes peak = 0;
  std::int64_t nodes = 0;
  std::int64_t steps = 0;
  bool ended = false;     // every buffer was tried below the target
  bool complete = false;  // every buffer is placed
};

class Packer {
 public:
  // All must outlive it.
  Packer(const Problem& problem, const Sections& sections, Stopper& stopper);

  // Places the pinned buffers, then those with a place in `fixed` (by buffer; may be empty), then
  // the others in order.
  Packing pack(const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed, Fit fit,
               const Goal& goal);

  const Blocks& blocks() const { return occupancy_.blocks(); }

 private:
  bool in_budget(const Goal& goal, const Packing& packing);
  void put(BufferIdx b, Bytes offset, Packing* packing);

  const Problem& problem_;
  Stopper& stopper_;
  Occupancy occupancy_;
  std::int64_t steps_before_ = 0;
};

// The rejected to the front, everything else behind them as it was.
void bump(const std::vector<BufferIdx>& rejected, std::vector<BufferIdx>* order);

}  // namespace memplan::chain
