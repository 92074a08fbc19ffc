// A plan for the price of reading the problem: buffers are placed as an allocator would at run
// time, in order of time, into free pieces that grow together again.
#pragma once

#include "greedy/passes.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// O(n) but for sorting, whatever the lifetimes; no tree of sections, whose lists grow with all that
// is live. What it does not look into, it takes for more than it is: a gap counts as held, a group
// as one buffer that lives as long as any of its members, a listed conflict as a common time, and
// the addresses of a pinned buffer as taken for ever. So it is for where first fit is too dear.
//
// The draft is complete, or there is no such plan below 2^62. The capacity is not looked at.
Draft coalescing_fit(const Problem& problem, const Sections& sections);

}  // namespace memplan
