#include "published/somas/fit.h"

#include <algorithm>
#include <cstddef>

#include "util/invariants.h"

namespace memplan::objects {

std::vector<Interval> merge(std::vector<Interval> avoid) {
  std::sort(avoid.begin(), avoid.end(),
            [](const Interval& x, const Interval& y) { return x.lower < y.lower; });
  std::vector<Interval> stack;
  for (const Interval& interval : avoid) {
    if (stack.empty() || stack.back().upper < interval.lower) {
      stack.push_back(interval);
    } else {
      stack.back().upper = std::max(stack.back().upper, interval.upper);
    }
  }
  for (std::size_t i = 1; i < stack.size(); ++i) {
    MEMPLAN_ASSERT(stack[i - 1].upper < stack[i].lower);
  }
  return stack;
}

Bytes fit(Bytes size, Bytes head, const std::vector<Interval>& avoid, const Stretch& object,
          Fitter fitter) {
  Bytes best = kNoOffset;
  Bytes best_gap = 0;
  Bytes upper = object.right;
  const auto consider = [&](Bytes lower) {
    if (head > upper - lower || size > object.right - lower) return;
    const Bytes gap = upper - lower;
    // Algorithms 11 and 12; from the top down, so that an equal one is lower.
    const bool sooner = fitter == Fitter::kFirst || best == kNoOffset || gap <= best_gap;
    if (!sooner) return;
    best = lower;
    best_gap = gap;
  };
  // Line 14 as printed could be taken to be inside of the test of line 10. Then a gap that is too
  // small would be joined to the next one below, over what is between them.
  for (std::size_t i = avoid.size(); i-- > 0; upper = avoid[i].lower) consider(avoid[i].upper);
  consider(object.offset);
  MEMPLAN_ASSERT(best == kNoOffset || (object.offset <= best && size <= object.right - best));
  return best;
}

}  // namespace memplan::objects
