// Numbers that look random, and are the same on every machine.
#pragma once

#include <cstdint>

#include "util/invariants.h"

namespace memplan::chain {

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // The bias of the remainder is of no account here.
  std::uint64_t below(std::uint64_t limit) {
    MEMPLAN_ASSERT(limit > 0);
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return (x ^ (x >> 31)) % limit;
  }

  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace memplan::chain
