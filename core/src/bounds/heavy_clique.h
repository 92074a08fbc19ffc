// A heavy set of buffers that all conflict with each other, by time or as listed.
//
//        a: ------                 At no time are more than two of them live. But a and c are in
//        b:    --------            the list of conflicts, or c has a gap and is live with a before
//        c: -        ------        it, so that all three have addresses of their own, and the peak
//                                  is at or above their sum.
#pragma once

#include <vector>

#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Whether there may be conflicts that no common time of all explains: listed ones, or gaps. Without
// either, a fullest section is the heaviest clique.
inline bool needs_cliques(const Problem& problem, const Sections& sections) {
  return !problem.conflicts.empty() || !sections.single_span;
}

// Rows, ascending, of which any two conflict with all their bytes: whatever the offsets, none
// shares a byte with another. It is the heaviest set that a greedy search finds, since the exact
// problem is NP-hard. Empty where none are needed.
std::vector<BufferIdx> heavy_clique(const Problem& problem, const Sections& sections);

// The sum is cut to 2^62 + 1, which is above every peak.
Bytes sum_of_sizes(const Problem& problem, const std::vector<BufferIdx>& rows);

}  // namespace memplan
