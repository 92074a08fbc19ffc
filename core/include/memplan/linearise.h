// Expresses conflicts beyond lifetimes by lifetimes alone, where that is possible.
//
//   a: ---                                               a: ------
//   b:   ---      with the conflict {a, c} are the same    b: ---
//   c:      ---   as                                       c:    ---
//
// A relation is an interval order's if such lifetimes exist: its graph is an interval graph. Then
// every solver for lifetimes can solve it, with all of its bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "memplan/budget.h"
#include "memplan/problem.h"

namespace memplan {

// Pairs of buffers that conflict, up to which linearised() goes to work: a few tenths of a second.
constexpr std::int64_t kMostPairsToLinearise = 4'000'000;

// The problem with other lifetimes, between 0 and the number of buffers, and without conflicts:
// the same pairs share a time as conflicted before, so the plans are the same. Nothing where there
// are no such lifetimes, where a buffer has gaps, where there are more pairs than `most_pairs`, or
// where the stopper ends it.
//
// Takes time in proportion to the pairs (Habib, McConnell, Paul and Viennot 2000). Buffers of size
// 0, which conflict with none, may share any time with others.
std::optional<Problem> linearised(const Problem& problem, Stopper& stopper,
                                  std::int64_t most_pairs = kMostPairsToLinearise);

}  // namespace memplan
