#include "greedy/coalescing.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/blocks.h"
#include "util/interval_lists.h"
#include "util/lowest_bit.h"
#include "util/ranked.h"

namespace memplan {

namespace {

constexpr std::int32_t kNone = -1;

// The free addresses, as pieces in classes of size (the two levels of TLSF: Masmano, Ripoll, Crespo
// and Real 2004). A class is 1/32 of a power of two, so that the first piece of the next higher
// class always fits and wastes little.
//
//   pieces   | free |  held  | held | free  | ...     by address, each knows its neighbours
//   classes  [ 32..33 ) [ 33..34 ) ... [ 64..66 )     of free pieces, lists
class Free {
 public:
  static constexpr int kFine = 5;  // 2^5 classes to a power of two
  static constexpr std::int64_t kClasses = 64 << kFine;

  Free() { first_.fill(kNone); }

  // Adds addresses that are free from the beginning. They border on no other piece.
  void add(Interval range) { list(fresh({range, kNone, kNone, kNone, kNone, false})); }

  // Takes addresses for a block of such a shape. Returns the piece, or kNone where there is no
  // room below 2^62; `offset` is that of the shape.
  std::int32_t take(const Shape& shape, Bytes* offset) {
    if (shape.above > kMaxBytes - shape.below) return kNone;
    for (std::int64_t at = next_class(class_of(extent(shape))); at < kClasses;
         at = next_class(at + 1)) {
      int looks = 0;
      for (std::int32_t p = first_[at]; p != kNone && looks < kLooks;
           p = pieces_[p].next, ++looks) {
        *offset = place_in(pieces_[p].range, shape);
        if (*offset == kNoOffset) continue;
        cut(p, {*offset - shape.below, *offset + shape.above});
        return p;
      }
    }
    return kNone;
  }

  // Rises with the size of the shape; below kClasses.
  static std::int64_t rank(const Shape& shape) { return class_of(extent(shape)); }

  // Gives the addresses of a piece back.
  void release(std::int32_t p) {
    const std::int32_t before = pieces_[p].before;
    if (before != kNone && !pieces_[before].held) {
      unlist(before);
      pieces_[p].range.lower = pieces_[before].range.lower;
      join(pieces_[before].before, p);
      spare_.push_back(before);
    }
    const std::int32_t after = pieces_[p].after;
    if (after != kNone && !pieces_[after].held) {
      unlist(after);
      pieces_[p].range.upper = pieces_[after].range.upper;
      join(p, pieces_[after].after);
      spare_.push_back(after);
    }
    list(p);
  }

 private:
  // Pieces of one class that are looked at: some of the class of the size itself are too small, and
  // of those above, some have no aligned place.
  static constexpr int kLooks = 16;

  struct Piece {
    Interval range;
    std::int32_t before;  // by address, or kNone
    std::int32_t after;
    std::int32_t previous;  // of its class, where it is free
    std::int32_t next;
    bool held;
  };

  static Bytes extent(const Shape& shape) {
    return shape.above > kMaxBytes - shape.below ? kMaxBytes : shape.below + shape.above;
  }

  // Sizes below 32 have a class each.
  static std::int64_t class_of(Bytes size) {
    int power = 0;
    for (int step = 32; step > 0; step /= 2) {
      if (size >> (power + step) >= Bytes{1} << kFine) power += step;
    }
    return (std::int64_t{power} << kFine) + (size >> power);
  }

  // The first class at or above this one that has a piece, or kClasses.
  std::int64_t next_class(std::int64_t at) const {
    for (std::int64_t word = at / 64; word < kClasses / 64; ++word) {
      const std::uint64_t bits =
          word == at / 64 ? any_[word] >> (at % 64) << (at % 64) : any_[word];
      if (bits != 0) return 64 * word + lowest_bit(bits);
    }
    return kClasses;
  }

  static Bytes place_in(const Interval& range, const Shape& shape) {
    const Bytes room = range.upper - range.lower;
    if (shape.below > room || shape.above > room - shape.below) return kNoOffset;
    const Bytes offset = shape.align(range.lower + shape.below);
    return offset > range.upper - shape.above ? kNoOffset : offset;
  }

  // What is left on either side stays free.
  void cut(std::int32_t p, Interval taken) {
    unlist(p);
    const Interval whole = pieces_[p].range;
    pieces_[p].range = taken;
    pieces_[p].held = true;
    if (whole.lower < taken.lower) {
      const std::int32_t before = pieces_[p].before;
      const std::int32_t rest = fresh({{whole.lower, taken.lower}, before, p, kNone, kNone, false});
      join(before, rest);
      join(rest, p);
      list(rest);
    }
    if (taken.upper < whole.upper) {
      const std::int32_t after = pieces_[p].after;
      const std::int32_t rest = fresh({{taken.upper, whole.upper}, p, after, kNone, kNone, false});
      join(p, rest);
      join(rest, after);
      list(rest);
    }
  }

  std::int32_t fresh(const Piece& piece) {
    if (spare_.empty()) {
      pieces_.push_back(piece);
      return static_cast<std::int32_t>(pieces_.size()) - 1;
    }
    const std::int32_t p = spare_.back();
    spare_.pop_back();
    pieces_[p] = piece;
    return p;
  }

  void join(std::int32_t before, std::int32_t after) {
    if (before != kNone) pieces_[before].after = after;
    if (after != kNone) pieces_[after].before = before;
  }

  void list(std::int32_t p) {
    Piece& piece = pieces_[p];
    const std::int64_t at = class_of(piece.range.upper - piece.range.lower);
    piece.held = false;
    piece.previous = kNone;
    piece.next = first_[at];
    if (piece.next != kNone) pieces_[piece.next].previous = p;
    first_[at] = p;
    any_[at / 64] |= std::uint64_t{1} << (at % 64);
  }

  void unlist(std::int32_t p) {
    const Piece& piece = pieces_[p];
    const std::int64_t at = class_of(piece.range.upper - piece.range.lower);
    if (piece.next != kNone) pieces_[piece.next].previous = piece.previous;
    if (piece.previous != kNone) {
      pieces_[piece.previous].next = piece.next;
    } else {
      first_[at] = piece.next;
      if (piece.next == kNone) any_[at / 64] &= ~(std::uint64_t{1} << (at % 64));
    }
  }

  std::vector<Piece> pieces_;
  std::vector<std::int32_t> spare_;                 // numbers that no piece has now
  std::array<std::int32_t, kClasses> first_;        // by class
  std::array<std::uint64_t, kClasses / 64> any_{};  // which classes have a piece
};

// A block, which is placed in one piece, and the sections in which some of it may be held.
struct TimedBlock {
  Shape shape;
  BufferIdx first;  // of a group, any member
  SectionIdx begin;
  SectionIdx end;  // inclusive
  std::int32_t piece = kNone;
};

class CoalescingFit {
 public:
  CoalescingFit(const Problem& problem, const Sections& sections)
      : problem_(problem), sections_(sections), blocks_(problem) {}

  Draft run() {
    if (!place_pinned()) return std::move(draft_);
    free_what_is_not_fixed();
    gather();
    stretch();
    draft_.complete = place_in_time();
    return std::move(draft_);
  }

 private:
  // Fails where a group which the pin of a member fixes meets another fixed block.
  bool place_pinned() {
    draft_.offsets.assign(problem_.size.size(), kNoOffset);
    if (problem_.pin.empty()) return true;
    Stopper never(std::numeric_limits<double>::infinity());
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return Passes(problem_, sections_, never).place_pinned({kMaxBytes, kMost, kMost}, &draft_);
  }

  void free_what_is_not_fixed() {
    std::vector<Interval> fixed;
    for (const Reserved& r : problem_.reserved) fixed.push_back({r.lower, r.upper});
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      const Bytes offset = draft_.offsets[b];
      if (offset != kNoOffset) fixed.push_back({offset, offset + problem_.size[b]});
    }
    Bytes end = 0;
    for (const auto& [lower, row] :
         ranked(fixed.size(), [&fixed](std::int32_t i) { return fixed[i].lower; })) {
      if (end < lower) free_.add({end, lower});
      end = std::max(end, fixed[row].upper);
    }
    if (end < kMaxBytes) free_.add({end, kMaxBytes});
  }

  void gather() {
    timed_block_of_.assign(problem_.size.size(), kNone);
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      if (draft_.offsets[b] != kNoOffset || timed_block_of_[b] != kNone) continue;
      TimedBlock timed{blocks_.shape(b), b, sections_.count, 0};
      const auto row = static_cast<std::int32_t>(timed_blocks_.size());
      blocks_.for_each(b, [&](BufferIdx member, Bytes) {
        timed_block_of_[member] = row;
        const std::int32_t from = sections_.span_begin[member];
        const std::int32_t to = sections_.span_begin[member + 1];
        if (from == to) return;
        timed.begin = std::min(timed.begin, sections_.spans[from].first);
        timed.end = std::max(timed.end, sections_.spans[to - 1].last);
      });
      // A block that never holds anything still needs addresses that are not reserved.
      if (timed.begin > timed.end) timed.begin = timed.end;
      timed_blocks_.push_back(timed);
    }
  }

  // A block with a listed conflict stays until the later of the two has begun.
  void stretch() {
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      for (auto other = problem_.conflicts.first(b); other != problem_.conflicts.last(b); ++other) {
        if (timed_block_of_[b] == kNone || timed_block_of_[*other] == kNone) continue;
        TimedBlock& timed = timed_blocks_[timed_block_of_[b]];
        timed.end = std::max(timed.end, timed_blocks_[timed_block_of_[*other]].begin);
      }
    }
  }

  // Where several begin at once, the larger class of size goes first, as it has fewer places.
  bool place_in_time() {
    const std::vector<Ranked> by_begin = ranked(timed_blocks_.size(), [this](std::int32_t i) {
      return Free::kClasses * (std::int64_t{timed_blocks_[i].begin} + 1) -
             Free::rank(timed_blocks_[i].shape);
    });
    const std::vector<Ranked> by_end =
        ranked(timed_blocks_.size(), [this](std::int32_t i) { return timed_blocks_[i].end; });
    auto leaving = by_end.begin();
    for (const auto& [key, row] : by_begin) {
      TimedBlock& timed = timed_blocks_[row];
      for (; leaving->key < timed.begin; ++leaving) {
        const std::int32_t piece = timed_blocks_[leaving->row].piece;
        if (piece != kNone) free_.release(piece);
      }
      if (!place(&timed)) return false;
    }
    return true;
  }

  bool place(TimedBlock* timed) {
    const Shape& shape = timed->shape;
    Bytes offset = 0;
    if (shape.below > 0 || shape.above > 0) {
      timed->piece = free_.take(shape, &offset);
      if (timed->piece == kNone) return false;
    }
    blocks_.for_each(timed->first, [&](BufferIdx member, Bytes shift) {
      draft_.offsets[member] = offset + shift;
      draft_.peak = std::max(draft_.peak, offset + shift + problem_.size[member]);
      ++draft_.nodes;
    });
    return true;
  }

  const Problem& problem_;
  const Sections& sections_;
  Blocks blocks_;
  Free free_;
  Draft draft_;
  std::vector<TimedBlock> timed_blocks_;
  std::vector<std::int32_t> timed_block_of_;  // by buffer; kNone: it is pinned
};

}  // namespace

Draft coalescing_fit(const Problem& problem, const Sections& sections) {
  return CoalescingFit(problem, sections).run();
}

}  // namespace memplan
