// A greedy pass: every buffer placed once, none moved again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "greedy/orders.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "model/occupancy.h"

namespace memplan {

// When to give a pass up.
struct Limits {
  Bytes bytes = kMaxBytes;  // no buffer may end above
  std::int64_t steps = 0;   // of work
  std::int64_t nodes = 0;   // placements
};

struct Draft {
  std::vector<Bytes> offsets;  // kNoOffset where not placed
  Bytes peak = 0;
  std::int64_t nodes = 0;
  std::int64_t steps = 0;
  BufferIdx stuck =
      -1;  // the buffer without a place below the limit, if that ended the pass; else -1
  bool complete = false;
};

// A draft of a pass that has a second chance for what does not fit below its target.
struct Packing : Draft {
  std::vector<BufferIdx> rejected;  // in the order in which they came
  bool ended = false;               // every buffer was tried below the target
};

enum class Fit { kFirst, kBest };

enum class Attempt { kPlaced, kRejected, kStopped };

// The loops of Passes::below, whatever keeps track of the places: attempt(b, bytes, again) places a
// buffer that ends at or below `bytes`; `again` where it was rejected below the target.
template <typename Try>
void place_or_reject(const std::vector<BufferIdx>& order, Bytes target, Bytes limit,
                     Packing* packing, Try attempt) {
  for (const BufferIdx b : order) {
    if (packing->offsets[b] != kNoOffset) continue;
    const Attempt done = attempt(b, std::min(target, limit), false);
    if (done == Attempt::kStopped) return;
    if (done == Attempt::kRejected) packing->rejected.push_back(b);
  }
  packing->ended = true;
  for (const BufferIdx b : packing->rejected) {
    if (attempt(b, limit, true) != Attempt::kPlaced) return;
  }
  packing->complete = true;
}

// All passes place the pinned buffers first, then the others around them. A contiguous group goes
// when the turn of its first member comes.
class Passes {
 public:
  // All must outlive it.
  Passes(const Problem& problem, const Sections& sections, Stopper& stopper);

  // Places the buffers one by one, each at its first or best fit.
  Draft in_order(const std::vector<BufferIdx>& order, Fit fit, const Limits& limits);

  // Places the buffers with a hint first, from the lowest up, each at its hint if that is free, and
  // then the rest at their first fit.
  Draft at_hints(const std::vector<BufferIdx>& order, const Limits& limits);

  // After the pinned buffers it places those with a place in `fixed` (by buffer; may be empty),
  // then the others one by one at their first or best fit below the target. Those that find no
  // place there are rejected: they come at the end, at their first fit below the limit.
  Packing below(Bytes target, const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed,
                Fit fit, const Limits& limits);

  // Clears the draft and places the pinned buffers alone. False where one ends above the limit, or
  // has a block that collides.
  bool place_pinned(const Limits& limits, Draft* draft);

  // Bottom-up: always the lowest offset at which some buffer rests on the skyline of those
  // placed before; among those that rest there, the first in the order.
  Draft on_skyline(const std::vector<BufferIdx>& order, const Limits& limits);

  const Blocks& blocks() const { return occupancy_.blocks(); }

 private:
  // The work of this pass.
  std::int64_t steps() const { return occupancy_.steps() - steps_before_; }
  bool in_budget(const Limits& limits, std::int64_t nodes, std::int64_t steps);
  bool in_budget(const Limits& limits, const Draft& draft) {
    return in_budget(limits, draft.nodes, draft.steps);
  }
  // Places the whole block of b.
  void put(BufferIdx b, Bytes offset, Draft* draft);
  // Does the same without the occupancy, for passes which keep track of it in another way.
  void note(BufferIdx b, Bytes offset, Draft* draft);
  void fill(const std::vector<BufferIdx>& order, Fit fit, const Limits& limits, Draft* draft);

  const Problem& problem_;
  const Sections& sections_;
  Stopper& stopper_;
  Occupancy occupancy_;
  std::int64_t steps_before_ = 0;  // of the occupancy, when the pass began
};

}  // namespace memplan
