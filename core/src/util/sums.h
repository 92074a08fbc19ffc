// Which sums some numbers can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "util/invariants.h"

namespace memplan {

// A set of numbers up to a limit, as bits.
class Sums {
 public:
  explicit Sums(std::size_t limit) : words_(limit / 64 + 1, 0) {}

  bool has(std::size_t i) const {
    MEMPLAN_ASSERT(i / 64 < words_.size());
    return (words_[i / 64] >> (i % 64) & 1) != 0;
  }
  void insert(std::size_t i) {
    MEMPLAN_ASSERT(i / 64 < words_.size());
    words_[i / 64] |= std::uint64_t{1} << (i % 64);
  }

  // Adds x + shift for every x of the set. It goes from the top down, so that it reads no word that
  // it has written.
  void add_shifted(std::size_t shift) {
    const std::size_t whole = shift / 64;
    const std::size_t bits = shift % 64;
    for (std::size_t i = words_.size(); i-- > whole;) {
      std::uint64_t word = words_[i - whole] << bits;
      if (bits > 0 && i > whole) word |= words_[i - whole - 1] >> (64 - bits);
      words_[i] |= word;
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace memplan
