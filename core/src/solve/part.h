// Bounds from a part of a problem, by search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solve/incumbent.h"

namespace memplan {

// Searches for the least peak of a part, with so many nodes, until it has a plan which shows that
// the part cannot raise the bound. Every plan of the whole contains one of the part that is lower
// by `aside` bytes, so what the part cannot do bounds the whole. `rows` are the rows of the whole
// that are in the part. `kind` names the part in a trace.
void learn_from_part(Incumbent& whole, Problem part, Bytes aside, std::vector<BufferIdx> rows,
                     std::int64_t nodes, const char* kind, const std::string& note);

}  // namespace memplan
