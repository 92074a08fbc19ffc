// The set of pairs that the published rules of safety start from, in words of 64 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/streams.h"
#include "util/invariants.h"

namespace memplan::streams {

using Word = std::uint64_t;
constexpr std::int32_t kBits = 64;

// All pairs of different tensors at first; one bit for each (SOMAS, appendix B).
class PairSet {
 public:
  explicit PairSet(TensorIdx tensors);

  void remove(TensorIdx a, TensorIdx b) {
    MEMPLAN_ASSERT(a != b && a >= 0 && b >= 0 && a < count_ && b < count_);
    const std::int64_t bit = a < b ? bit_of(a, b) : bit_of(b, a);
    words_[static_cast<std::size_t>(bit / kBits)] &= ~(Word{1} << (bit % kBits));
  }
  UnsafePairs rows() const;

 private:
  // The pairs of a lower tensor lie side by side.
  std::int64_t bit_of(std::int64_t low, std::int64_t high) const {
    return low * (2 * count_ - low - 1) / 2 + high - low - 1;
  }
  // Calls `visit(low, high)` for every pair, in ascending order.
  template <typename Visit>
  void for_each(Visit visit) const;

  std::int64_t count_;
  std::vector<Word> words_;
};

}  // namespace memplan::streams
