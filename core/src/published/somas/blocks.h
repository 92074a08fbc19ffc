// What the algorithms of source 004 place, and in which order (section 5.2).
#pragma once

#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan::objects {

// "Either a single tensor or a sequence of tensors bound by a contiguous constraint."
struct Block {
  std::vector<BufferIdx> tensors;  // the lowest first
  Bytes size = 0;                  // of all together
};

std::vector<Block> blocks(const Problem& problem);

// Sort of Algorithms 6 and 7. A block goes by its own size (size), by the greatest breadth of its
// tensors (breadth), by the first of their sources (source), or by their unsafe pairs all together
// (unsafe); the source leaves open which. Ties go by the lowest buffer. Throws
// std::invalid_argument for a sort that is none of these. Cut short by the stopper, the order is
// any.
std::vector<Block> sorted(const Problem& problem, const Sections& sections, const std::string& sort,
                          Stopper& stopper);

}  // namespace memplan::objects
