// A sequence within the capacity, by running an order and dropping what is needed last.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "again/branch.h"
#include "again/model.h"
#include "model/counter.h"

namespace memplan::again {

// What to drop first: the least of
//
//     cost of bringing it back ^ cost * weight / (bytes ^ size * time to its next use ^ time)
//
// Exponents are in halves, so that they need no functions but square roots, which are the same on
// all machines.
struct Scoring {
  int cost = 2;
  int size = 2;
  int time = 2;
  int depth = 40;                               // how many operators the cost looks back to
  std::size_t sample = 0;                       // how many it chooses from, drawn at random; 0: all
  const std::vector<double>* weight = nullptr;  // by storage
  // It gives up when its re-runs cost more, in units.
  std::int64_t most_extra = std::numeric_limits<std::int64_t>::max();
};

// Runs the order within the capacity: makes again what is absent, or moves it back if that costs
// less, and drops what scores least.
// Returns nothing if it does not come to the end that way.
std::optional<std::vector<OperatorIdx>> simulate(const Model& model,
                                                 const std::vector<OperatorIdx>& order,
                                                 Bytes capacity, const Scoring& scoring,
                                                 Counter& counter);

// Leaves out re-runs that are not needed, dearest first, and delays the others to their first
// reader if that fits too. The sequence must fit.
void prune(const Model& model, Bytes capacity, std::vector<OperatorIdx>& runs);

}  // namespace memplan::again
