// The limits that are asked from below, by the search and by the prover.
#pragma once

#include <algorithm>

#include "memplan/plan.h"
#include "memplan/types.h"
#include "solve/incumbent.h"

namespace memplan {

// After a refuted limit the next one is farther away, in strides that double, since the optimum may
// be any number of bytes away.
class Stride {
 public:
  // Returns the next limit: not above half of the way from the bound to the best plan.
  Bytes next_limit(const Incumbent& incumbent) {
    const Bytes bound = incumbent.lower_bound();
    bytes_ = std::min(bytes_, (incumbent.top() - bound) / 2);
    bytes_ -= bytes_ % incumbent.unit();
    return bound + bytes_;
  }

  // Takes in the answer at that limit. A refutation that was not cheap makes the stride shorter.
  void learn(const Incumbent& incumbent, Status answer, bool cheap = true) {
    if (answer != Status::kInfeasible) {
      bytes_ /= 4;
    } else {
      bytes_ = cheap ? std::max(incumbent.unit(), 2 * bytes_) : bytes_ / 2;
    }
  }

 private:
  Bytes bytes_ = 0;
};

}  // namespace memplan
