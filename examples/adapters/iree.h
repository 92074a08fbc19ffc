// A packing of IREE's slices of known size, in place of the greedy one in LayoutSlices.cpp.
//
//     int64_t total = packSlices(slices, config.getMinBufferOffsetAlignment(),
//                                config.getMinBufferRangeAlignment(), sizeOf, place);
//
// `sizeOf(slice)` is the constant behind slice.dynamicSize, and `place(slice, offset)` replaces the
// uses of slice.packedOffset by the base offset plus this one.
#pragma once

#include "rows.h"

namespace memplan_adapters {

// Lifetimes include their end, as in IREE. Returns the bytes of the slab, or -1 without an answer.
template <typename Slices, typename SizeOf, typename Place>
std::int64_t packSlices(const Slices& slices, std::int64_t offsetAlignment,
                        std::int64_t rangeAlignment, SizeOf sizeOf, Place place) {
  std::vector<Row> rows;
  for (const auto& slice : slices) {
    rows.push_back({slice.lifetimeStart, slice.lifetimeEnd + 1,
                    round_up(sizeOf(slice), rangeAlignment), offsetAlignment});
  }
  std::int64_t peak = 0;
  const std::vector<std::int64_t> offsets = plan_rows(rows, &peak);
  if (offsets.size() != rows.size()) return -1;
  std::size_t at = 0;
  for (const auto& slice : slices) place(slice, offsets[at++]);
  return round_up(peak, rangeAlignment);
}

}  // namespace memplan_adapters
