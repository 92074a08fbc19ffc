// The cheapest pairs that satisfy all rows: a covering program, by branch and bound.
#pragma once

#include <cstdint>
#include <vector>

#include "apart/model.h"
#include "apart/rows.h"
#include "model/counter.h"

namespace memplan::apart {

struct Cover {
  bool is_found = false;   // some pairs that cost less than the limit satisfy all rows
  Chosen pairs;            // the cheapest of them, if the search has ended
  std::int64_t bound = 0;  // proved: no pairs that satisfy all rows cost less
};

// `limit` is the cost from which on a cover is of no use; the bound is never above it.
Cover cheapest_cover(const Model& model, const std::vector<Row>& rows, std::int64_t limit,
                     Counter& counter);

}  // namespace memplan::apart
