// Makes room for buffers that found none: others give way, and are placed again in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "repack/arena.h"
#include "util/random.h"

namespace memplan::repack {

// This is the search of large/ejection.h on an arena: a step visits only the buffers that share a
// time with the one to be placed.
class Ejection {
 public:
  // Both must outlive it.
  Ejection(Arena& arena, std::uint64_t seed, Stopper& stopper);

  // Places the unplaced buffers, none above the limit, within so many steps, until looks() of the
  // arena. Where it fails, the placed buffers do not overlap, and the others are unplaced.
  bool insert(std::vector<Slot> unplaced, Bytes limit, std::int64_t steps, std::int64_t last_look);

  std::int64_t steps() const { return steps_; }

 private:
  // Offsets between `lower` and `upper`, both excluded, throw out a buffer.
  struct Bar {
    Bytes lower;
    Bytes upper;
    std::int64_t weight;
  };

  void bar(Slot slot, Bytes limit);
  Bytes cheapest_place(Slot slot, Bytes top);

  Arena& arena_;
  Random random_;
  Stopper& stopper_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> failures_;  // by slot
  std::vector<Bar> bars_;               // at work
  std::vector<Slot> ejected_;
};

}  // namespace memplan::repack
