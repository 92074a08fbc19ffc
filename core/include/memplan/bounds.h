// Lower bounds on the peak that need no search.
#pragma once

#include <vector>

#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

struct Bound {
  Bytes bytes = 0;          // no plan has a smaller peak
  SectionIdx section = -1;  // where it is attained, if it is of one section
  const char* rule = "";    // which of the rules in bounds.cpp gave it
  // Which buffers need so much by themselves, if it is of listed conflicts, of a group, or of one.
  std::vector<BufferIdx> buffers = {};
};

Bound lower_bound(const Problem& problem, const Sections& sections);

// The same without what listed conflicts and groups add, so that a solver can be linked without
// them.
Bound bound_of_lifetimes(const Problem& problem, const Sections& sections);

// The least peak at or above `at_least` that a best plan can have: where buffers can only rest on
// one another, peaks are sums of sizes, and not every sum exists. With groups it is the next
// multiple of unit_of_peaks(). `at_least` itself where the rule does not apply, or would take too
// long. A search that has just refuted at_least - 1 need not ask for the peaks between.
Bytes next_reachable_peak(const Problem& problem, const Sections& sections, Bytes at_least);

// Divides every peak that a best plan can have; 1 where that rule does not apply. Limits of which
// the multiples below are the same ask the same question.
Bytes unit_of_peaks(const Problem& problem, const Sections& sections);

}  // namespace memplan
