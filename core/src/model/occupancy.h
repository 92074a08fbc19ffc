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
//
// Conflicts beyond lifetimes are one more such list for each buffer (neighbours.h). All that moves
// with a buffer (blocks.h) is placed with it, and a place is free if it is free for all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/problem.h"
#include "memplan/sections.h"
#include "model/blocks.h"
#include "model/neighbours.h"
#include "util/interval_lists.h"

namespace memplan {

class Occupancy {
 public:
  // Both must outlive it.
  Occupancy(const Problem& problem, const Sections& sections);

  void clear();
  void place(BufferIdx b, Bytes offset);

  const Blocks& blocks() const { return blocks_; }

  // Whether the pinned block of b ends below the limit, and the rest of the block is free. Pins
  // themselves are known not to collide (check() of problem.h).
  bool admits(BufferIdx b, Bytes pin, Bytes limit);

  // The lowest free offset of b at or above `from` that ends at or below `limit`, or kNoOffset.
  Bytes first_fit(BufferIdx b, Bytes from, Bytes limit);

  // The offset of b at the bottom of the smallest free gap that holds it, the lowest of those;
  // on top of everything where no gap does; kNoOffset where that ends above `limit`. The gap of a
  // block is what it can be raised by as a whole, with its own length.
  Bytes best_fit(BufferIdx b, Bytes limit);

  // The work done so far, about one step per interval looked at: a clock that runs alike on every
  // machine.
  std::int64_t steps() const { return steps_; }

  // A parent touches what its children touch, a node touches what it covers, and covered_ names the
  // nearest cover above each node.
  bool check_invariants() const;

 private:
  // What a span holds, or would hold: [offset + lower, offset + upper), from the buffer at work.
  struct Reach {
    Bytes lower;
    Bytes upper;
  };

  // One list on the way up through the addresses. Intervals before `at` are below the reach.
  struct Cursor {
    const Interval* at;
    const Interval* end;
    Reach reach;
  };

  void place_span(const Span& span, Bytes offset);
  void cover(std::size_t node, Interval held);
  void gather(BufferIdx b);
  void gather_span(const Span& span, Bytes shift);
  void gather_neighbours(BufferIdx b);
  void look_at(const IntervalLists& lists, std::size_t list, const Reach& reach);
  static Bytes raised_above(const Interval& below, const Reach& reach, const Shape& shape,
                            Bytes top);
  Bytes settle(Bytes offset, const Shape& shape, Bytes top);
  // Whether every list has let this offset pass, and stands at its first interval above.
  bool is_free(Bytes offset) const;

  const Problem& problem_;
  const Sections& sections_;
  std::size_t leaves_;
  IntervalLists cover_;  // of inner nodes only: a leaf has no descendants to ask for it
  std::vector<std::uint32_t> covered_;  // by inner node, the nearest on its way up with a cover
  IntervalLists touch_;
  Blocks blocks_;
  Neighbours neighbours_;
  std::vector<Interval> reserved_;
  std::vector<Interval> barred_;         // by the neighbours of the block at work,
  std::vector<std::size_t> barred_end_;  // member by member
  std::vector<Cursor> cursors_;
  std::int64_t steps_ = 0;
};

}  // namespace memplan
