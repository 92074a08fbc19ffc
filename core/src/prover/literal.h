// The variables and literals of the prover.
//
// A variable is an item (its offset) or a pair of items that conflict (which of them is below).
// Each has two halves, numbered so that h ^ 1 is the other half, and each half has a lower bound
// that only rises as the search goes down:
//
//     2i      x >= v, x the offset of item i
//     2i + 1  y >= v, y = -(x + size): its offset when the address axis is mirrored
//     a       1 if the tail of a lies below its head, else 0
//     a ^ 1   1 if the head lies below the tail
//
// So everything that is known is a list of lower bounds, and a rule about offsets is written once
// and read in two directions: as it is (0), and mirrored (1). In direction d, "u before v" means
// u below v for d = 0, and above for d = 1.
#pragma once

#include <cstdint>

#include "memplan/types.h"

namespace memplan::prover {

using Half = std::int32_t;

// half >= value
struct Literal {
  Half half = 0;
  Bytes value = 0;
};

}  // namespace memplan::prover
