// A complete search over canonical positions, for buffers of few sizes.
//
// Push each buffer down until it rests on 0, on the end of a reserved range, or on a buffer that it
// does not overlap: no new pair meets. So some cheapest plan has offsets that are sums of sizes
// above 0 or above the end of a reserved range. If these are few, each buffer gets one of them:
//
//   cell 3 |    |  c |       a position is a cell; what a buffer costs in it is kept while others
//   cell 2 | a  |    |       are placed. The bound is the cost so far, plus the cheapest cell of
//   cell 1 |    |  d |       each other buffer, plus what the others cost among themselves (the
//   cell 0 | b  |    |       dolls: the search for the last k of them is done first, k = 1, 2 ...)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "apart/model.h"
#include "model/counter.h"

namespace memplan::apart {

struct Slotted {
  std::vector<Bytes> offsets;  // of a plan cheaper than the limit; empty without one
  std::int64_t bound = 0;      // proved: no plan costs less
};

// Nothing if the problem has other constraints, or too many positions. With counter not spent at
// the end, the offsets are those of a cheapest plan, or the bound is the limit.
std::optional<Slotted> fill_slots(const Model& model, std::int64_t limit, Counter& counter);

}  // namespace memplan::apart
