// Rounds in which engines take turns, with slices of nodes that double from round to round.
#pragma once

#include <algorithm>
#include <cstdint>

#include "solve/incumbent.h"

namespace memplan {

// Calls round(slice) until the question is settled or the budget is spent, or until it returns
// false: then no engine can use a longer slice, whatever the budget.
template <typename Round>
void round_robin(Incumbent& incumbent, Round round) {
  constexpr std::int64_t kFirst = 2000;  // nodes of the search
  constexpr std::int64_t kPerBuffer = 4;
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  std::int64_t slice = kFirst + kPerBuffer * std::int64_t{incumbent.problem().count()};
  while (!incumbent.settled() && !incumbent.out_of_budget()) {
    if (!round(slice)) return;
    slice = std::min(2 * slice, kMost);
  }
}

}  // namespace memplan
