// The things that the searches over pairs place: every buffer that ever holds memory, with the
// offsets that are legal for it whatever the others do.
//
//   address
//      C +----------------------+
//        |      +------+        |    pins, alignment, reserved ranges and the capacity are all of
//        |      |  b1  |        |    one kind: they make the legal offsets of an item a set of
//        |######|######|########|    its own. A search asks for the next legal offset above (or
//        |####reserved##########|    below) a bound, and that rounding is monotone, which is all
//        |  +------ b0 -------+ |    that its proofs need to know.
//      0 +----------------------+
#pragma once

#include <vector>

#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

using ItemIdx = std::int32_t;
constexpr ItemIdx kNoItem = -1;

struct Items {
  Bytes capacity = 0;
  SectionIdx section_count = 0;
  std::vector<Reserved> reserved;  // cut off at the capacity
  bool windowed = false;           // some span is less than its whole buffer

  // Columns: row i of each is item i.
  std::vector<BufferIdx> buffer;
  std::vector<Bytes> size;
  std::vector<Bytes> alignment;
  std::vector<Bytes> earliest;                 // the least legal offset
  std::vector<Bytes> latest;                   // the greatest
  std::vector<std::int32_t> span_begin = {0};  // item i owns spans[span_begin[i] ..]
  std::vector<Span> spans;

  // One offset per buffer of the problem, those that hold nothing ready placed.
  std::vector<Bytes> offsets;
  // A buffer without any legal offset, or -1.
  BufferIdx misfit = -1;

  ItemIdx count() const { return static_cast<ItemIdx>(size.size()); }
  const Span* begin(ItemIdx i) const { return spans.data() + span_begin[i]; }
  const Span* end(ItemIdx i) const { return spans.data() + span_begin[i + 1]; }
  SectionIdx first(ItemIdx i) const { return begin(i)->first; }
  SectionIdx last(ItemIdx i) const { return (end(i) - 1)->last; }

  // The least legal offset of i at or above `bound`, or latest + 1 where there is none.
  Bytes legal_above(ItemIdx i, Bytes bound) const {
    if (bound <= earliest[i]) return earliest[i];
    if (bound > latest[i]) return latest[i] + 1;
    if (alignment[i] == 1 && reserved.empty()) return bound;
    return round_up(bound, size[i], alignment[i]);
  }
  // The greatest legal offset of i at or below `bound`, or earliest - 1.
  Bytes legal_below(ItemIdx i, Bytes bound) const {
    if (bound >= latest[i]) return latest[i];
    if (bound < earliest[i]) return earliest[i] - 1;
    if (alignment[i] == 1 && reserved.empty()) return bound;
    return round_down(bound, size[i], alignment[i]);
  }

  // The highest address with `bytes` that are not reserved between it and the capacity, or -1.
  Bytes highest_floor(Bytes bytes) const;

  Bytes round_up(Bytes bound, Bytes size, Bytes alignment) const;
  Bytes round_down(Bytes bound, Bytes size, Bytes alignment) const;
};

Items make_items(const Problem& problem, const Sections& sections, Bytes capacity);

// The plan with item i at offsets[i]; kOptimal: it fits, as asked.
Plan plan_of(const Problem& problem, const Items& items, const std::vector<Bytes>& offsets,
             const char* note);

// max(offset + size)
Bytes peak_of(const Problem& problem, const std::vector<Bytes>& offsets);

// The first section whose bytes do not fit between 0 and the capacity, or -1 (source 000,
// equation 1, less what is reserved).
SectionIdx overfull_section(const Items& items);

// The buffers that are live in a section.
std::vector<BufferIdx> buffers_in_section(const Items& items, SectionIdx section);

}  // namespace memplan
