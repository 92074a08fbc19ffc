// A sequence within the capacity, found from its end to its begin.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "again/model.h"
#include "model/counter.h"

namespace memplan::again {

struct BackwardOptions {
  bool free_order = true;  // a first run may be later than in the order
  std::size_t width = 1;   // how many sequences are gone on with
  // Whether re-runs are tried that make a place for others, and all that need nothing else.
  bool thorough = false;
  // What a byte costs for each step through which it is held: 2^price, in units.
  int price = 0;
};

// The price at which holding the whole capacity all the time costs about as much as all re-runs.
int usual_byte_price(const Model& model, Bytes capacity);

// Goes through the order from its last operator to its first one. Returns nothing if no sequence
// is found that way, or the counter is over.
std::optional<std::vector<OperatorIdx>> run_backward(const Model& model,
                                                     const std::vector<OperatorIdx>& order,
                                                     Bytes capacity, const BackwardOptions& options,
                                                     Counter& counter);

}  // namespace memplan::again
