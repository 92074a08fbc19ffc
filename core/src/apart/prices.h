// A bound for large problems: the linear program of load rows, by a subgradient.
//
// Each row has a price y >= 0 from which all plans cost at least
//
//     sum over rows of need y  +  sum over pairs of min(0, cost - sum of amount y)
//
// Prices are moved against what the rows lack, new rows are those that the mean of the pairs which
// met so far violates, and the best prices are rounded to whole numbers at the end, so that the
// bound is exact.
#pragma once

#include <cstdint>

#include "apart/model.h"
#include "model/counter.h"

namespace memplan::apart {

// A bound in units; `limit` is a cost that a plan has, so that no bound is above it.
std::int64_t bound_by_prices(const Model& model, std::int64_t limit, std::uint64_t seed,
                             Counter& counter);

}  // namespace memplan::apart
