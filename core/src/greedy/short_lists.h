// First fit without a tree, for buffers that live in one piece. The sections
// are cut into strips, and each strip has three lists by rising address:
//
//   part   the buffers that begin or end within the strip     | strip 0 | strip 1 | strip 2 |
//   full   the addresses that are held in all of it           |    +----+---b0----+---+     |
//   any    the addresses that are held in some of it          | +-b1-+  |         | +-b2-+  |
//
// b0 is in `full` of strip 1, in `part` of the others, and in `any` of all three. A span meets
// `any` of the strips that it covers; where it begins or ends, it meets `full`, and those of `part`
// that share a section with it. A span begins and ends once, so at most two lists are read buffer
// by buffer, and the merged ones have few intervals.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "greedy/passes.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "util/interval_lists.h"

namespace memplan {

class ShortLists {
 public:
  // Whether they can serve the problem, and are fast: each buffer has at most one span, few spans
  // reach over many strips, and there are no conflicts beyond lifetimes and no groups.
  static bool suits(const Problem& problem, const Sections& sections);

  // All must outlive it.
  ShortLists(const Problem& problem, const Sections& sections, Stopper& stopper);

  // The draft of Passes::in_order with first fit; a step is a placement.
  Draft in_order(const std::vector<BufferIdx>& order, const Limits& limits);
  // The packing of Passes::below with first fit; its steps are about as many as those of the tree.
  Packing below(Bytes target, const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed,
                const Limits& limits);

 private:
  struct Held {
    Bytes lower;
    Bytes upper;
    SectionIdx first;  // inclusive
    SectionIdx last;
  };
  struct Cursor {
    const Interval* at;
    const Interval* end;
  };
  struct PartCursor {
    const Held* at;
    const Held* end;
  };

  Held* part(std::size_t strip) { return parts_.data() + part_begin_[strip]; }
  std::size_t strip_of(SectionIdx section) const {
    return static_cast<std::size_t>(section) >> shift_;
  }
  bool covers(const Span& span, std::size_t strip) const {
    return span.first <= first_of(strip) && span.last >= first_of(strip + 1) - 1;
  }
  // Also of the strip behind the last one.
  SectionIdx first_of(std::size_t strip) const {
    return std::min(static_cast<SectionIdx>(strip << shift_), sections_.count);
  }

  void clear();
  const Span* span_of(BufferIdx b) const;  // null for a buffer that holds nothing
  // The lowest free offset that is not above `top`, or kNoOffset.
  Bytes lowest_place(BufferIdx b, Bytes top);
  void fetch_ahead(const std::vector<BufferIdx>& order, std::size_t at) const;
  bool in_budget(const Limits& limits, const Draft& draft);
  void put(BufferIdx b, Bytes offset, Draft* draft);
  void put_part(std::size_t strip, const Held& held);
  bool check_invariants() const;

  const Problem& problem_;
  const Sections& sections_;
  Stopper& stopper_;
  int shift_;  // a strip has 2^shift_ sections
  // How many may come into each `part` is known in advance, so that these lists never grow.
  std::vector<std::uint32_t> part_begin_;  // by strip, in parts_; one more at the end
  std::vector<std::uint32_t> part_size_;
  std::vector<Held> parts_;
  IntervalLists full_;
  IntervalLists any_;
  std::vector<Interval> reserved_;
  std::vector<Cursor> cursors_;
  std::int64_t looks_ = 0;  // at intervals, since the pass began
};

}  // namespace memplan
