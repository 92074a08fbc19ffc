// Pseudo-random numbers that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "util/invariants.h"

namespace memplan {

// The state of SplitMix64 grows by this for each number.
constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ULL;

// The number that SplitMix64 makes of a state.
inline std::uint64_t mix(std::uint64_t state) {
  state += kGoldenRatio;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
  return state ^ (state >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // The bias of the remainder is too small to matter here.
  std::uint64_t below(std::uint64_t limit) {
    MEMPLAN_ASSERT(limit > 0);
    const std::uint64_t number = mix(state_);
    state_ += kGoldenRatio;
    return number % limit;
  }

  // An index of a list of this length.
  std::size_t index(std::size_t length) { return static_cast<std::size_t>(below(length)); }

  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace memplan
