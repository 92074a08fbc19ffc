// Sets of item ids as bit words that live in an Arena.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exact/arena.h"
#include "util/invariants.h"

namespace memplan::exact {

class IdSet {
 public:
  IdSet() = default;
  IdSet(Arena& arena, int words) : bits_(arena.take<std::uint64_t>(words)), words_(words) {
    clear();
  }
  IdSet(std::uint64_t* bits, int words) : bits_(bits), words_(words) {}

  void clear() { std::fill(bits_, bits_ + words_, std::uint64_t{0}); }
  void add(int id) {
    MEMPLAN_ASSERT(id >= 0 && id >> 6 < words_);
    bits_[id >> 6] |= std::uint64_t{1} << (id & 63);
  }
  bool has(int id) const {
    MEMPLAN_ASSERT(id >= 0 && id >> 6 < words_);
    return (bits_[id >> 6] >> (id & 63)) & 1;
  }
  void add(const IdSet& other) {
    MEMPLAN_ASSERT(words_ == other.words_);
    for (int w = 0; w < words_; ++w) bits_[w] |= other.bits_[w];
  }
  bool meets(const IdSet& other) const {
    MEMPLAN_ASSERT(words_ == other.words_);
    for (int w = 0; w < words_; ++w) {
      if ((bits_[w] & other.bits_[w]) != 0) return true;
    }
    return false;
  }

 private:
  std::uint64_t* bits_ = nullptr;
  int words_ = 0;
};

}  // namespace memplan::exact
