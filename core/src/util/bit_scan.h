// Counts zeros at either end of a word, for which the language has no function before C++20.
#pragma once

#include <cstdint>

#ifdef _MSC_VER
#include <intrin.h>
#endif

#include "util/invariants.h"

namespace memplan {

// The index of the lowest bit that is set. The word must not be 0.
inline std::int32_t lowest_bit(std::uint64_t word) {
  MEMPLAN_ASSERT(word != 0);
#ifdef _MSC_VER
  unsigned long index;
  _BitScanForward64(&index, word);
  return static_cast<std::int32_t>(index);
#else
  return __builtin_ctzll(word);
#endif
}

// The index of the highest bit that is set. The word must not be 0.
inline std::int32_t highest_bit(std::uint64_t word) {
  MEMPLAN_ASSERT(word != 0);
#ifdef _MSC_VER
  unsigned long index;
  _BitScanReverse64(&index, word);
  return static_cast<std::int32_t>(index);
#else
  return 63 - __builtin_clzll(word);
#endif
}

}  // namespace memplan
