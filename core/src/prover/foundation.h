// Items that may be taken to lie at the bottom, and so need no search.
//
//     |=========u=========|         |--a--|  |--b--|     u conflicts with everything: all lies
//     |--a--|  |--b--|         ->   |--a--|  |--b--|     below it or above it. Put at the bottom,
//     |  |----c----|      |         |  |----c----|       it lifts what was below by its size, up
//     +-------------------+         |=========u=========|  to where its top was.
//
// Without it, what is left may fall apart, and each part may have such items again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memplan/types.h"
#include "prover/halt.h"

namespace memplan::prover {

struct Foundation {
  std::vector<std::int32_t> laid;  // the items at the bottom, in the order in which they were laid
  std::vector<char> is_laid;       // by item
  std::vector<Bytes> floor;        // by item: the sum of what was laid below it
};

// `live`: sets of items that are live together, sorted; a pair conflicts if it is in one of them.
// Offsets must be free, and sizes those that count at the top as well. At least one item of each
// component is left. Nothing if `halt` ends it.
std::optional<Foundation> lay_foundation(const std::vector<std::vector<std::int32_t>>& live,
                                         const std::vector<Bytes>& size, const Halt& halt = {});

}  // namespace memplan::prover
