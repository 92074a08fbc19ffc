// What is held where and when, and the free places in it: the engine of the greedy passes.
//
// Overlapping pairs of buffers are never listed (there may be
// 10^10 of them). A segment tree over the sections has two lists of address intervals at every
// node:
//
//   cover   held in all sections of the node        root  [ 0 1 2 3 ]
//   touch   held in some section of the node              [0 1] [2 3]
//                                                         [0][1][2][3]
//
// A span is placed in `cover` and `touch` of the O(log n) nodes that make it up, and in `touch`
// of their ancestors. It then meets another span exactly in `touch` of the nodes that make that
// one up, or in `cover` of their ancestors.
#pragma once

#include <cstdint>
#include <vector>

#include "greedy/interval_lists.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// The least multiple of the alignment at or above the offset.
inline Bytes align_up(Bytes offset, Bytes alignment) {
  const Bytes over = offset % alignment;
  return over == 0 ? offset : offset + (alignment - over);
}

class Occupancy {
 public:
  // Both must outlive it.
  Occupancy(const Problem& problem, const Sections& sections);

  void clear();
  void place(BufferIdx b, Bytes offset);

  // The lowest free offset of b at or above `from` that ends at or below `limit`, or kNoOffset.
  Bytes first_fit(BufferIdx b, Bytes from, Bytes limit);

  // The offset of b at the bottom of the smallest free gap that holds it, the lowest of those;
  // on top of everything where no gap does; kNoOffset where that ends above `limit`.
  Bytes best_fit(BufferIdx b, Bytes limit);

  // The work done so far, about one step per interval looked at: a clock that runs alike on every
  // machine.
  std::int64_t steps() const { return steps_; }

 private:
  // One list on the way up through the addresses, for the span that would hold
  // [offset + lower, offset + upper). Intervals before `at` are below the offset.
  struct Cursor {
    const Interval* at;
    const Interval* end;
    Bytes lower;
    Bytes upper;
  };

  void gather(BufferIdx b);
  void gather_span(const Span& span);
  void look_at(const IntervalLists& lists, std::size_t list, const Span& span);
  Bytes settle(Bytes offset, Bytes alignment, Bytes top);

  const Problem& problem_;
  const Sections& sections_;
  std::size_t leaves_;
  IntervalLists cover_;  // of inner nodes only: a leaf has no descendants to ask for it
  IntervalLists touch_;
  std::vector<Interval> reserved_;
  std::vector<Cursor> cursors_;
  std::vector<std::size_t> nodes_;
  std::int64_t steps_ = 0;
};

}  // namespace memplan
