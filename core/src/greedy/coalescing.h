// A plan for little more than the time to read the problem: buffers are placed as an allocator
// would at run time, in order of time from the greatest load outward, and free pieces that touch
// are joined.
#pragma once

#include "greedy/passes.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// It takes O(n) but for sorting, whatever the lifetimes, as it has no tree of sections, whose lists
// grow with all that is live. In return it overestimates: a gap counts as held, a group as one
// buffer that lives as long as any of its members, a listed conflict as a common time, and the
// addresses of a pinned buffer as taken for ever. So it serves where first fit is too dear,
// and as a first try without these.
//
// The draft is complete unless such a plan would end above the limit. The capacity is ignored.
Draft coalescing_fit(const Problem& problem, const Sections& sections, Bytes limit = kMaxBytes);

// Whether it overestimates nothing.
bool coalescing_suits(const Problem& problem, const Sections& sections);

// With more buffers than this, solve() tries it before first fit. It costs a third of that and
// reaches the bound of more than half of the corpus.
constexpr BufferIdx kCoalescingFirst = 1000;

}  // namespace memplan
