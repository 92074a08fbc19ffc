// How the items that end at a boundary can be matched with those that begin there.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/types.h"

namespace memplan::exact {

// Subsets of both sides, of equal sums. Bit i stands for the i-th of that side.
struct Match {
  std::uint64_t ending;
  std::uint64_t beginning;
};

struct Matchings {
  std::vector<std::vector<Match>> ways;  // each splits both sides wholly; the likeliest first
  bool all = true;                       // false: there are more
};

// `ending` and `beginning` have the same sum, and none of them is empty.
Matchings matchings(const std::vector<Bytes>& ending, const std::vector<Bytes>& beginning);

}  // namespace memplan::exact
