// Bounds from a part of a problem, by search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solve/incumbent.h"

namespace memplan {

// Looks for the least peak of a part, with so many nodes, until it has a plan that says nothing
// new. What it learns is a bound of the whole, whose every plan has one of the part in it that is
// lower by `aside` bytes. `rows` of the whole are those that need so much.
// `kind` is what a trace calls it.
void learn_from_part(Incumbent& whole, Problem part, Bytes aside, std::vector<BufferIdx> rows,
                     std::int64_t nodes, const char* kind, const std::string& note);

}  // namespace memplan
