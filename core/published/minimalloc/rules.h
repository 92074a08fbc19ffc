// A partial solution of MiniMalloc, and the rules that prune it (sections 6.2 and 6.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/minimalloc.h"
#include "model/items.h"

namespace memplan {

// Which items stack on which: v placed after u lies at off_u + effective size of (u, v), or above.
struct Overlaps {
  std::vector<std::vector<ItemIdx>> of;  // by item
  // Parallel to `of`, for windowed problems only: the most, over the sections in which both are
  // live, of the upper end of u's window less the lower end of v's. Elsewhere it is the size of u.
  std::vector<std::vector<Bytes>> effective;
  bool all_positive = true;  // no effective size is 0 or less
  std::vector<std::vector<ItemIdx>> in_section;

  // Null, or a clause on why they could not be listed.
  const char* build(const Items& items, Stopper& stopper);
};

// The switches that keep their proofs for this problem and in this combination.
struct Rules {
  MiniMallocOptions on;

  Rules(const MiniMallocOptions& options, const Overlaps& overlaps);
};

// The place of a buffer in a canonical solution (section 5): offset, then index.
struct CanonicalPlace {
  Bytes offset = 0;
  std::int32_t index = -1;

  bool operator<(const CanonicalPlace& o) const {
    return offset != o.offset ? offset < o.offset : index < o.index;
  }
};

// A range of sections, both ends included.
struct SectionRange {
  SectionIdx first = 0;
  SectionIdx last = -1;
};

// S of the paper: what is allocated, and for everything else the least offset that is left to it.
// All of it is kept incrementally; every change is on a trail and can be taken back.
class PartialSolution {
 public:
  PartialSolution(const Items& items, const Overlaps& overlaps, const Rules& rules);

  bool allocated(ItemIdx i) const { return allocated_[i] != 0; }
  // The offset of an allocated item; the minimum viable offset of any other.
  Bytes offset(ItemIdx i) const { return offset_[i]; }
  const std::vector<Bytes>& offsets() const { return offset_; }
  bool fits(ItemIdx i) const { return offset_[i] <= items_.latest[i]; }
  Bytes height(ItemIdx i) const { return offset_[i] + items_.size[i]; }
  // By section: the bytes that are still to be placed.
  const std::vector<Bytes>& unallocated() const { return unallocated_; }

  struct Effect {
    bool overhead = false;  // an unallocated item overlaps the one placed
    bool divides = false;   // no unallocated item crosses some time that it crossed
    bool stuck = false;     // a pinned item was raised off its pin: no solution extends this
  };
  // Allocates i at its minimum viable offset, and raises what overlaps it.
  Effect place(ItemIdx i);

  struct Mark {
    std::size_t cells;
    std::size_t placed;
  };
  Mark mark() const { return {trail_.size(), placed_.size()}; }
  void undo(const Mark& mark);

  // The heights and unallocated bytes of the sections are what a new sum gives, and no unallocated
  // item lies lower than the allocated ones let it.
  bool check_invariants() const;

  // Equation 3 over some sections, with the floors that the rules allow; `last_offset` is that of
  // the item placed last.
  bool sections_fit(SectionRange range, Bytes last_offset);

  // The same bound for any next item, before it is placed: no canonical extension that starts above
  // this offset passes. (In a section s with u unallocated bytes the floor is too high for them,
  // or, if the item itself is one of them, its height is for the others.)
  Bytes highest_start(SectionRange range) const;

 private:
  bool section_fits(SectionIdx s, Bytes last_offset);
  bool raise(ItemIdx i, Bytes bound);
  void set(Bytes* cell, Bytes value) {
    trail_.emplace_back(cell, *cell);
    *cell = value;
  }

  const Items& items_;
  const Overlaps& overlaps_;
  const MiniMallocOptions rules_;
  std::vector<char> allocated_;
  std::vector<Bytes> offset_;
  std::vector<Bytes> height_;       // by section: the top of what is allocated
  std::vector<Bytes> unallocated_;  // by section: the sum of sizes
  std::vector<Bytes> crossing_;     // by section: unallocated items that also live in the next
  std::vector<ItemIdx> witness_;    // by section: an item that could still start low enough
  std::vector<std::pair<Bytes*, Bytes>> trail_;
  std::vector<ItemIdx> placed_;
};

}  // namespace memplan
