// Lists where the listed conflicts of a buffer (Problem::conflicts) are placed.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/problem.h"
#include "util/interval_lists.h"
#include "util/ranked.h"

namespace memplan {

// A row may name thousands. They are needed by rising address, and sorting them again for every
// buffer would cost more than all the rest of a pass. So the placed are kept in that order, each
// with its slot in it, and a row is sorted by marking its slots:
//
//   by address   b7  b2  b9  b4  b0 | b5  b1    the last few are not in order yet: putting each in
//   marked        .   x   .   x   x             at once would renumber all above it
class Neighbours {
 public:
  explicit Neighbours(const Problem& problem);  // which must outlive it

  void clear();
  void place(BufferIdx b, Bytes offset);

  // Appends what the placed neighbours of b hold, sorted and coalesced. Returns the work done, in
  // steps of Occupancy.
  std::int64_t list(BufferIdx b, std::vector<Interval>* intervals);

  // Slots and the order by address name each other; no mark is left over.
  bool check_invariants() const;

 private:
  void put_in_order();
  Interval held(BufferIdx b) const { return {offset_[b], offset_[b] + problem_.size[b]}; }

  const Problem& problem_;
  std::vector<Bytes> offset_;
  std::vector<std::int32_t> slot_;    // in by_address_, or kNowhere, or kLate
  std::vector<Ranked> by_address_;    // by offset
  std::vector<Ranked> late_;          // placed, and not in order yet
  std::vector<Ranked> merged_;        // scratch
  std::vector<std::uint64_t> marks_;  // by slot; all clear between calls
  std::vector<Ranked> unsorted_;
};

}  // namespace memplan
