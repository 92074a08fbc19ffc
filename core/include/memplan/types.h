// The types and constants that every header shares.
#pragma once

#include <cstdint>

namespace memplan {

using BufferIdx = std::int32_t;    // a row of a Problem
using SectionIdx = std::int32_t;   // a column of the sweep (sections.h)
using OperatorIdx = std::int32_t;  // a step of a program
using Time = std::int64_t;         // logical time, no unit
using Bytes = std::int64_t;        // a size or an offset in the arena

// Sizes, offsets, capacities and the load stay at or below 2^62, so that the sum of any two
// of them fits in 64 bits.
constexpr Bytes kMaxBytes = Bytes{1} << 62;

// Times are from -kMaxTime to kMaxTime. A lifetime may be twice as long: end - start needs 65 bits.
constexpr Time kMaxTime = Time{1} << 62;

// Stands for "not pinned", "no hint" and "not placed" in columns of offsets.
constexpr Bytes kNoOffset = -1;

// `to` waits for `from`.
struct Arc {
  OperatorIdx from = 0;
  OperatorIdx to = 0;
};

}  // namespace memplan
