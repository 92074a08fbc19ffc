// A block is placed in one piece: a buffer by itself, or all of a contiguous group.
//
//          offset of b      |<- above ->|
//   |<- below ->|           |           |
//   +-----------+-----------+-----------+     Seen from b, its group reaches so far up and down,
//   |     a     |     b     |     c     |     and every member is `shift` away.
//   +-----------+-----------+-----------+
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/problem.h"

namespace memplan {

// The least multiple of the alignment at or above the offset.
inline Bytes align_up(Bytes offset, Bytes alignment) {
  if (alignment == 1) return offset;  // which spares a division
  const Bytes over = offset % alignment;
  return over == 0 ? offset : offset + (alignment - over);
}

// Where a buffer may be if its whole block is to lie at legal offsets.
struct Shape {
  Bytes below = 0;      // its least offset: so much of the block is below it
  Bytes above = 0;      // so far above its offset the block ends; kMaxBytes + 1 if that is too far
  Bytes alignment = 1;  // of the strictest member; the other alignments divide it
  Bytes phase = 0;      // how far that member is above the buffer

  // The least aligned offset at or above `offset`, which is at least `below`.
  Bytes align(Bytes offset) const { return align_up(offset + phase, alignment) - phase; }
};

class Blocks {
 public:
  explicit Blocks(const Problem& problem);  // which must outlive it

  // Whether there is any group at all.
  bool any() const { return !members_.empty(); }

  Shape shape(BufferIdx b) const;

  // Calls visit(member, shift) for b and all that move with it.
  template <typename Visit>
  void for_each(BufferIdx b, Visit visit) const {
    const std::int32_t block = block_of_.empty() ? kNoGroup : block_of_[b];
    if (block == kNoGroup) {
      visit(b, Bytes{0});
      return;
    }
    for (auto i = blocks_[block].begin; i < blocks_[block].end; ++i) {
      visit(members_[i], problem_.lead[members_[i]] - problem_.lead[b]);
    }
  }

  // The first of every block, as they come in the order.
  std::vector<BufferIdx> firsts(const std::vector<BufferIdx>& order) const;

  // Every member of a group in one block, whose reach and alignment are those of all.
  bool check_invariants() const;

 private:
  struct Block {
    std::int32_t begin;  // rows of members_
    std::int32_t end;
    BufferIdx strictest;  // of the greatest alignment
    Bytes lower;          // in leads
    Bytes upper;
  };

  const Problem& problem_;
  std::vector<std::int32_t> block_of_;  // by buffer; empty where there are no groups
  std::vector<BufferIdx> members_;
  std::vector<Block> blocks_;
};

}  // namespace memplan
