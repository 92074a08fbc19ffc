// The slices of a round robin, in which engines take turns.
//
// They double from round to round: no engine waits long for the answer of another, and one that
// starts again in each round spends no more than twice what one long run would.
#pragma once

#include <algorithm>
#include <cstdint>

#include "memplan/problem.h"

namespace memplan {

// The first slice, in nodes of the search.
inline std::int64_t first_slice(const Problem& problem) {
  return 2000 + 4 * std::int64_t{problem.count()};
}

inline std::int64_t next_slice(std::int64_t slice) {
  return std::min(2 * slice, std::int64_t{1} << 60);
}

}  // namespace memplan
