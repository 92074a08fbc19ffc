#include "greedy/coalescing.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "model/blocks.h"
#include "util/bit_scan.h"
#include "util/interval_lists.h"
#include "util/ranked.h"

namespace memplan {

namespace {

constexpr std::int32_t kNoPiece = -1;

// The free addresses, as pieces in classes of size (the two levels of TLSF: Masmano, Ripoll, Crespo
// and Real 2004). A class is 1/32 of a power of two, so that the first piece of the next higher
// class always fits and wastes little.
//
//   pieces   | free |  held  | held | free  | ...     by address, each knows its neighbours
//   classes  [ 32..33 ) [ 33..34 ) ... [ 64..66 )     of free pieces, lists
class Free {
 public:
  static constexpr int kFine = 5;  // 2^5 classes to a power of two
  static constexpr std::size_t kClasses = 64 << kFine;

  Free() { first_.fill(kNoPiece); }

  // Adds addresses that are free from the beginning. They border on no other piece.
  void add(Interval range) { list(fresh({range, kNoPiece, kNoPiece, kNoPiece, kNoPiece, false})); }

  // Takes addresses for a block of such a shape. Returns the piece, or kNoPiece where there is no
  // room below 2^62; `offset` is that of the shape.
  std::int32_t take(const Shape& shape, Bytes* offset) {
    if (shape.above > kMaxBytes - shape.below) return kNoPiece;
    for (std::size_t at = next_class(class_of(extent(shape))); at < kClasses;
         at = next_class(at + 1)) {
      int looks = 0;
      for (std::int32_t p = first_[at]; p != kNoPiece && looks < kLooks;
           p = pieces_[p].next, ++looks) {
        *offset = place_in(pieces_[p].range, shape);
        if (*offset == kNoOffset) continue;
        cut(p, {*offset - shape.below, *offset + shape.above});
        return p;
      }
    }
    return kNoPiece;
  }

  // Rises with the size of the shape; below kClasses.
  static std::int32_t rank(const Shape& shape) {
    return static_cast<std::int32_t>(class_of(extent(shape)));
  }

  // Gives the addresses of a piece back.
  void release(std::int32_t p) {
    const std::int32_t before = pieces_[p].before;
    if (before != kNoPiece && !pieces_[before].held) {
      unlist(before);
      pieces_[p].range.lower = pieces_[before].range.lower;
      join(pieces_[before].before, p);
      spare_.push_back(before);
    }
    const std::int32_t after = pieces_[p].after;
    if (after != kNoPiece && !pieces_[after].held) {
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
    std::int32_t before;  // by address, or kNoPiece
    std::int32_t after;
    std::int32_t previous;  // of its class, where it is free
    std::int32_t next;
    bool held;
  };

  static Bytes extent(const Shape& shape) {
    return shape.above > kMaxBytes - shape.below ? kMaxBytes : shape.below + shape.above;
  }

  // Sizes below 32 have a class each.
  static std::size_t class_of(Bytes size) {
    const auto bits = static_cast<std::uint64_t>(size);
    const int power = bits >> kFine == 0 ? 0 : highest_bit(bits) - kFine;
    return (static_cast<std::size_t>(power) << kFine) + static_cast<std::size_t>(size >> power);
  }

  // The first class at or above this one that has a piece, or kClasses.
  std::size_t next_class(std::size_t at) const {
    for (std::size_t word = at / 64; word < kClasses / 64; ++word) {
      const std::uint64_t bits =
          word == at / 64 ? any_[word] >> (at % 64) << (at % 64) : any_[word];
      if (bits != 0) return 64 * word + static_cast<std::size_t>(lowest_bit(bits));
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
      const std::int32_t rest =
          fresh({{whole.lower, taken.lower}, before, p, kNoPiece, kNoPiece, false});
      join(before, rest);
      join(rest, p);
      list(rest);
    }
    if (taken.upper < whole.upper) {
      const std::int32_t after = pieces_[p].after;
      const std::int32_t rest =
          fresh({{taken.upper, whole.upper}, p, after, kNoPiece, kNoPiece, false});
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
    if (before != kNoPiece) pieces_[before].after = after;
    if (after != kNoPiece) pieces_[after].before = before;
  }

  void list(std::int32_t p) {
    Piece& piece = pieces_[p];
    const std::size_t at = class_of(piece.range.upper - piece.range.lower);
    piece.held = false;
    piece.previous = kNoPiece;
    piece.next = first_[at];
    if (piece.next != kNoPiece) pieces_[piece.next].previous = p;
    first_[at] = p;
    any_[at / 64] |= std::uint64_t{1} << (at % 64);
  }

  void unlist(std::int32_t p) {
    const Piece& piece = pieces_[p];
    const std::size_t at = class_of(piece.range.upper - piece.range.lower);
    if (piece.next != kNoPiece) pieces_[piece.next].previous = piece.previous;
    if (piece.previous != kNoPiece) {
      pieces_[piece.previous].next = piece.next;
    } else {
      first_[at] = piece.next;
      if (piece.next == kNoPiece) any_[at / 64] &= ~(std::uint64_t{1} << (at % 64));
    }
  }

  std::vector<Piece> pieces_;
  std::vector<std::int32_t> spare_;                 // numbers that no piece has now
  std::array<std::int32_t, kClasses> first_;        // by class
  std::array<std::uint64_t, kClasses / 64> any_{};  // which classes have a piece
};

// A block, which is placed in one piece, and the sections in which some of it may be held.
struct TimedBlock {
  BufferIdx first;  // of a group, any member
  SectionIdx begin;
  SectionIdx end;     // inclusive
  std::int32_t rank;  // of its size
  std::int32_t piece;
};

class CoalescingFit {
 public:
  CoalescingFit(const Problem& problem, const Sections& sections, Bytes limit)
      : problem_(problem), sections_(sections), limit_(limit), blocks_(problem) {}

  Draft run() {
    if (!place_pinned()) return std::move(draft_);
    free_what_is_not_fixed();
    gather();
    stretch();
    draft_.complete = place_outward();
    return std::move(draft_);
  }

 private:
  // Fails where a group which the pin of a member fixes meets another fixed block.
  bool place_pinned() {
    draft_.offsets.assign(problem_.size.size(), kNoOffset);
    if (problem_.pin.empty()) return true;
    Stopper never(std::numeric_limits<double>::infinity());
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    return Passes(problem_, sections_, never).place_pinned({limit_, kMost, kMost}, &draft_);
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
      const Bytes upper = std::min(lower, limit_);
      if (end < upper) free_.add({end, upper});
      end = std::max(end, fixed[row].upper);
    }
    if (end < limit_) free_.add({end, limit_});
  }

  void gather() {
    timed_block_of_.assign(problem_.size.size(), kNoPiece);
    timed_blocks_.reserve(problem_.size.size());
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      if (draft_.offsets[b] != kNoOffset || timed_block_of_[b] != kNoPiece) continue;
      TimedBlock timed{b, sections_.count, 0, Free::rank(blocks_.shape(b)), kNoPiece};
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
        if (timed_block_of_[b] == kNoPiece || timed_block_of_[*other] == kNoPiece) continue;
        TimedBlock& timed = timed_blocks_[timed_block_of_[b]];
        timed.end = std::max(timed.end, timed_blocks_[timed_block_of_[*other]].begin);
      }
    }
  }

  // Places the blocks that are there when the load is greatest one on another, the longest first,
  // which wastes nothing there; and then outward from that time, forward those that begin later,
  // and back those that end earlier.
  bool place_outward() {
    const std::vector<Bytes> load = loads(sections_);
    const auto fullest =
        static_cast<SectionIdx>(std::max_element(load.begin(), load.end()) - load.begin());
    const std::vector<std::int32_t> by_begin = sorted_by(&TimedBlock::begin, 1);
    const std::vector<std::int32_t> by_end = sorted_by(&TimedBlock::end, -1);
    const auto later = std::find_if(by_begin.begin(), by_begin.end(), [&](std::int32_t row) {
      return timed_blocks_[row].begin > fullest;
    });
    const auto earlier = std::find_if(by_end.rbegin(), by_end.rend(), [&](std::int32_t row) {
      return timed_blocks_[row].end < fullest;
    });

    std::vector<std::int32_t> now;
    for (auto row = by_end.rbegin(); row != earlier; ++row) {
      if (timed_blocks_[*row].begin <= fullest) now.push_back(*row);
    }
    for (const auto& [key, at] : ranked(now.size(), [&](std::int32_t i) {
           const TimedBlock& timed = timed_blocks_[now[i]];
           return std::int64_t{Free::kClasses} * (std::int64_t{timed.begin} - timed.end) -
                  timed.rank;
         })) {
      if (!place(&timed_blocks_[now[at]])) return false;
    }
    const Free around = free_;
    for (auto row = later, gone = by_end.end() - (earlier - by_end.rbegin()); row != by_begin.end();
         ++row) {
      TimedBlock& timed = timed_blocks_[*row];
      for (; timed_blocks_[*gone].end < timed.begin; ++gone) release(timed_blocks_[*gone]);
      if (!place(&timed)) return false;
    }
    free_ = around;
    auto gone = std::make_reverse_iterator(later);
    for (auto row = earlier; row != by_end.rend(); ++row) {
      TimedBlock& timed = timed_blocks_[*row];
      for (; timed_blocks_[*gone].begin > timed.end; ++gone) release(timed_blocks_[*gone]);
      if (!place(&timed)) return false;
    }
    return true;
  }

  // The rows of the blocks by rising section. Where several share one, the larger class of size
  // goes first, as it has fewer places; with `sign` -1 it goes last, for a loop that runs
  // backwards.
  std::vector<std::int32_t> sorted_by(SectionIdx TimedBlock::* section, int sign) const {
    std::vector<std::int32_t> at(static_cast<std::size_t>(sections_.count) + 2, 0);
    for (const TimedBlock& timed : timed_blocks_) ++at[timed.*section + 1];
    std::partial_sum(at.begin(), at.end(), at.begin());
    std::vector<std::int32_t> rows(timed_blocks_.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[at[timed_blocks_[i].*section]++] = static_cast<std::int32_t>(i);
    }
    const auto goes_first = [this, sign](std::int32_t x, std::int32_t y) {
      const std::int32_t difference = sign * (timed_blocks_[x].rank - timed_blocks_[y].rank);
      return difference != 0 ? difference > 0 : sign * (x - y) < 0;
    };
    auto begin = rows.begin();
    for (const std::int32_t count : at) {
      const auto end = rows.begin() + count;
      std::sort(begin, end, goes_first);
      begin = end;
    }
    return rows;
  }

  void release(const TimedBlock& timed) {
    if (timed.piece != kNoPiece) free_.release(timed.piece);
  }

  bool place(TimedBlock* timed) {
    const Shape shape = blocks_.shape(timed->first);
    Bytes offset = 0;
    if (shape.below > 0 || shape.above > 0) {
      timed->piece = free_.take(shape, &offset);
      if (timed->piece == kNoPiece) return false;
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
  Bytes limit_;
  Blocks blocks_;
  Free free_;
  Draft draft_;
  std::vector<TimedBlock> timed_blocks_;
  std::vector<std::int32_t> timed_block_of_;  // by buffer; kNoPiece: it is pinned
};

}  // namespace

Draft coalescing_fit(const Problem& problem, const Sections& sections, Bytes limit) {
  return CoalescingFit(problem, sections, limit).run();
}

bool coalescing_suits(const Problem& problem, const Sections& sections) {
  return sections.single_span && problem.pin.empty() && !has_relations(problem);
}

}  // namespace memplan
