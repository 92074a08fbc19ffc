// The items that the searches place: every buffer that ever holds memory, with the offsets that are
// legal for it whatever the others do.
//
//   address
//      C +----------------------+
//        |      +------+        |    pins, alignment, reserved ranges and the capacity are all of
//        |      |  b1  |        |    one kind: they make the legal offsets of an item a set of
//        |######|######|########|    its own. A search asks for the next legal offset above (or
//        |####reserved##########|    below) a bound, and that rounding is monotone, which is all
//        |  +------ b0 -------+ |    that its proofs need to know.
//      0 +----------------------+
//
// A contiguous group is one item, a rigid body: its members are parts that keep their distances, so
// that its spans are windows of the whole, and one offset places all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

using ItemIdx = std::int32_t;
constexpr ItemIdx kNoItem = -1;

// One buffer as a part of an item; most items are one part.
struct Part {
  BufferIdx buffer = 0;
  ItemIdx item = 0;
  Bytes lead = 0;  // from the item's offset up to its own
  Bytes size = 0;
  std::int32_t span_begin = 0;  // it owns spans[span_begin .. span_end), counted from the item
  std::int32_t span_end = 0;
};

struct Items {
  Bytes capacity = 0;
  SectionIdx section_count = 0;
  std::vector<Reserved> reserved;  // cut off at the capacity
  bool windowed = false;           // some span is less than its whole buffer
  bool grouped = false;            // some item is a group

  // Columns: row i of each is item i.
  std::vector<BufferIdx> buffer;               // its first part
  std::vector<Bytes> size;                     // from its offset up to its end
  std::vector<Bytes> alignment;                // the strictest of its parts
  std::vector<Bytes> phase;                    // (offset + phase) is a multiple of it
  std::vector<Bytes> earliest;                 // the least legal offset
  std::vector<Bytes> latest;                   // the greatest
  std::vector<std::int32_t> span_begin = {0};  // item i owns spans[span_begin[i] ..]
  std::vector<Span> spans;
  std::vector<std::int32_t> part_begin = {0};  // item i owns parts[part_begin[i] ..], by lead
  std::vector<Part> parts;
  // Parts of different items that may share no address, whatever the time: rows of `parts`.
  std::vector<std::pair<std::int32_t, std::int32_t>> barred;

  // One offset per buffer of the problem; buffers that hold nothing are placed already.
  std::vector<Bytes> offsets;
  // Buffers without a legal offset, alone or because of their group; there are rarely any.
  std::vector<BufferIdx> misfits;

  ItemIdx count() const { return static_cast<ItemIdx>(size.size()); }
  // The note of a plan which is refuted by misfits.
  const char* misfit_note() const {
    return misfits.size() > 1 ? "one group has no legal offset" : "one buffer has no legal offset";
  }
  const Span* begin(ItemIdx i) const { return spans.data() + span_begin[i]; }
  const Span* end(ItemIdx i) const { return spans.data() + span_begin[i + 1]; }
  SectionIdx first(ItemIdx i) const { return begin(i)->first; }
  SectionIdx last(ItemIdx i) const { return (end(i) - 1)->last; }
  const Part* first_part(ItemIdx i) const { return parts.data() + part_begin[i]; }
  const Part* last_part(ItemIdx i) const { return parts.data() + part_begin[i + 1]; }
  bool is_group(ItemIdx i) const { return part_begin[i + 1] - part_begin[i] > 1; }

  // The least legal offset of i at or above `bound`, or latest + 1 where there is none.
  Bytes legal_above(ItemIdx i, Bytes bound) const {
    if (bound <= earliest[i]) return earliest[i];
    if (bound > latest[i]) return latest[i] + 1;
    if (alignment[i] == 1 && reserved.empty()) return bound;
    if (is_group(i)) return std::min(group_up(i, bound), latest[i] + 1);
    return round_up(bound, size[i], alignment[i]);
  }
  // The greatest legal offset of i at or below `bound`, or earliest - 1.
  Bytes legal_below(ItemIdx i, Bytes bound) const {
    if (bound >= latest[i]) return latest[i];
    if (bound < earliest[i]) return earliest[i] - 1;
    if (alignment[i] == 1 && reserved.empty()) return bound;
    if (is_group(i)) return group_down(i, bound);
    return round_down(bound, size[i], alignment[i]);
  }

  // The highest address with `bytes` that are not reserved between it and the capacity, or -1.
  Bytes highest_floor(Bytes bytes) const;

  Bytes round_up(Bytes bound, Bytes size, Bytes alignment) const;
  Bytes round_down(Bytes bound, Bytes size, Bytes alignment) const;
  // The same for all parts of a group at once; beyond the capacity, or -1, where there is none.
  Bytes group_up(ItemIdx i, Bytes bound) const;
  Bytes group_down(ItemIdx i, Bytes bound) const;
};

// Checks the comments on the columns.
bool check_invariants(const Items& items);

// Whether item i may lie at offsets[i]: at a legal offset, apart from all that it meets. Its time
// grows with the pairs that meet, so it skips the pairs of very many items.
bool is_plan(const Items& items, const std::vector<Bytes>& offsets);
Items make_items(const Problem& problem, const Sections& sections, Bytes capacity);

// The plan with item i at offsets[i]; kFits, as asked.
Plan plan_of(const Problem& problem, const Items& items, const std::vector<Bytes>& offsets,
             const char* note);

// max(offset + size)
Bytes peak_of(const Problem& problem, const std::vector<Bytes>& offsets);

// The first section whose bytes do not fit between 0 and the capacity, or -1 (MiniMalloc,
// equation 1, less what is reserved).
SectionIdx overfull_section(const Items& items);

// The buffers that are live in a section.
std::vector<BufferIdx> buffers_in_section(const Items& items, SectionIdx section);

// The buffers that some items are made of, sorted.
std::vector<BufferIdx> buffers_of(const Items& items, const std::vector<ItemIdx>& chosen);

}  // namespace memplan
