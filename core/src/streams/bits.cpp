#include "streams/bits.h"

#include <cstddef>
#include <numeric>

#include "util/bit_scan.h"
#include "util/invariants.h"

namespace memplan::streams {

PairSet::PairSet(TensorIdx tensors)
    : count_(tensors),
      words_(static_cast<std::size_t>(count_ * (count_ - 1) / 2 / kBits) + 1, ~Word{0}) {}

template <typename Visit>
void PairSet::for_each(Visit visit) const {
  for (std::int64_t low = 0; low + 1 < count_; ++low) {
    const std::int64_t begin = bit_of(low, low + 1);
    const std::int64_t end = begin + count_ - low - 1;
    for (std::int64_t w = begin / kBits; w * kBits < end; ++w) {
      for (Word left = words_[static_cast<std::size_t>(w)]; left != 0; left &= left - 1) {
        const std::int64_t bit = w * kBits + lowest_bit(left);
        if (bit < begin) continue;
        if (bit >= end) break;
        visit(low, low + 1 + bit - begin);
      }
    }
  }
}

UnsafePairs PairSet::rows() const {
  UnsafePairs pairs;
  pairs.row_begin.assign(static_cast<std::size_t>(count_) + 1, 0);
  for_each([&](std::int64_t low, std::int64_t) {
    ++pairs.row_begin[static_cast<std::size_t>(low) + 1];
  });
  std::partial_sum(pairs.row_begin.begin(), pairs.row_begin.end(), pairs.row_begin.begin());
  pairs.other.reserve(static_cast<std::size_t>(pairs.row_begin.back()));
  for_each([&](std::int64_t, std::int64_t high) {
    pairs.other.push_back(static_cast<TensorIdx>(high));
  });
  MEMPLAN_ASSERT(static_cast<std::int64_t>(pairs.other.size()) == pairs.row_begin.back());
  return pairs;
}

}  // namespace memplan::streams
