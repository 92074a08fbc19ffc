// The blocks that the algorithms of SOMAS place, their order (section 5.2), which pairs of
// them may not overlap, and where one fits (appendix D, Algorithms 9 to 12).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "memplan/types.h"
#include "util/interval_lists.h"

namespace memplan::objects {

// "Either a single tensor or a sequence of tensors bound by a contiguous constraint."
struct Block {
  std::vector<BufferIdx> tensors;  // the lowest first
  Bytes size = 0;                  // of all together
};

std::vector<Block> blocks(const Problem& problem);

// Sort of Algorithms 6 and 7. A block goes by its own size (size), by the greatest breadth of its
// tensors (breadth), by the first of their sources (source), or by their unsafe pairs all together
// (unsafe); the source leaves open which. Ties go by the lowest buffer. Throws
// std::invalid_argument for a sort that is none of these. Where the stopper ends the sort, the
// order is any.
std::vector<Block> sorted(const Problem& problem, const Sections& sections, const std::string& sort,
                          Stopper& stopper);

// The unsafe pairs of the tensors of one block at a time. Their lists are marked once, since Many
// Objects asks about them in each object in turn.
class Unsafe {
 public:
  // Both must outlive it.
  Unsafe(const Problem& problem, const Sections& sections)
      : problem_(problem), sections_(sections) {}

  // From now on, with() gives the pairs of these tensors.
  void look_from(const std::vector<BufferIdx>& tensors) {
    mark(0);
    tensors_ = tensors;
    if (listed_.size() < tensors.size() * count()) listed_.resize(tensors.size() * count(), 0);
    mark(1);
  }

  // Whether the tensor at index k of those is unsafe with another one. A tensor is no pair with
  // itself, and one without bytes bars no other.
  bool with(std::size_t k, BufferIdx other) const {
    const BufferIdx tensor = tensors_[k];
    if (other == tensor || problem_.size[tensor] == 0 || problem_.size[other] == 0) return false;
    return (!problem_.conflicts.empty() && listed_[k * count() + other] != 0) ||
           meets(tensor, other);
  }

 private:
  std::size_t count() const { return problem_.conflicts.empty() ? 0 : problem_.size.size(); }

  void mark(char listed) {
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      const BufferIdx b = tensors_[k];
      for (auto i = problem_.conflicts.first(b); i != problem_.conflicts.last(b); ++i) {
        listed_[k * count() + *i] = listed;
      }
    }
  }

  bool meets(BufferIdx tensor, BufferIdx other) const {
    const auto& begin = sections_.span_begin;
    for (auto i = begin[tensor]; i < begin[tensor + 1]; ++i) {
      for (auto k = begin[other]; k < begin[other + 1]; ++k) {
        const Span& x = sections_.spans[i];
        const Span& y = sections_.spans[k];
        if (x.first <= y.last && y.first <= x.last) return true;
      }
    }
    return false;
  }

  const Problem& problem_;
  const Sections& sections_;
  std::vector<BufferIdx> tensors_;
  std::vector<char> listed_;  // row by row of tensors_: what is in the conflicts of each
};

enum class Fitter { kFirst, kBest };

// A stretch of the arena that blocks share: one for all of them, or one for those that fit into its
// first block.
struct Stretch {
  Bytes offset = 0;
  Bytes right = 0;  // the first address behind it
};

// Algorithm 9: sorted, and those that overlap are one.
std::vector<Interval> merge(std::vector<Interval> avoid);

// Algorithm 10: an offset for a block of `size` bytes whose first tensor has `head` bytes and must
// not begin in any of the intervals, or kNoOffset where there is no room.
Bytes fit(Bytes size, Bytes head, const std::vector<Interval>& avoid, const Stretch& object,
          Fitter fitter);

}  // namespace memplan::objects
