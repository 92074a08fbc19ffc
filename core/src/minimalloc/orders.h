// The static orders of MiniMalloc's search.
#pragma once

#include <string>
#include <vector>

#include "memplan/problem.h"
#include "minimalloc/rules.h"

namespace memplan {

// The rank of every item when they are sorted by the keys of `order` (minimalloc.h), all
// descending, ties by row. Throws std::invalid_argument for a letter that is no key.
std::vector<std::int32_t> static_ranks(const Problem& problem, const Items& items,
                                       const Overlaps& overlaps, const std::string& order);

}  // namespace memplan
