// How tight each section of a problem is, at a target for its peak.
#pragma once

#include <vector>

#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan::chain {

// For every section: how many buffers as large as its largest would fit into what the target leaves
// above its load. The load alone is a poor measure: a section at 0.8 of the target whose largest
// buffer needs 0.18 of it in one piece is tighter than one at 0.95 full of crumbs.
std::vector<double> rooms(const Problem& problem, const Sections& sections, Bytes target);

}  // namespace memplan::chain
