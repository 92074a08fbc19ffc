// Merge and Fit of source 004, appendix D (Algorithms 9 to 12).
#pragma once

#include <vector>

#include "memplan/types.h"
#include "util/interval_lists.h"

namespace memplan::objects {

enum class Fitter { kFirst, kBest };

// A stretch of the arena that blocks share: one for all of them, or one for those that fit into its
// first block.
struct Stretch {
  Bytes offset = 0;
  Bytes right = 0;  // the first address behind it
};

// Algorithm 9: sorted, and those that overlap are one.
std::vector<Interval> merge(std::vector<Interval> avoid);

// Algorithm 10: an offset for a block of `size` bytes whose first tensor has `head` bytes and must
// not begin in any of the intervals, or kNoOffset where there is no room.
Bytes fit(Bytes size, Bytes head, const std::vector<Interval>& avoid, const Stretch& object,
          Fitter fitter);

}  // namespace memplan::objects
