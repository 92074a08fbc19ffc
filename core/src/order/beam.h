// Beam searches: of the states in which equally many operators have run, the best few go on.
#pragma once

#include <optional>
#include <vector>

#include "model/counter.h"
#include "order/moves.h"

namespace memplan::order {

enum class BeamKey { kPeakFirst, kLiveFirst };

struct BeamOptions {
  int width = 1;
  BeamKey key = BeamKey::kPeakFirst;
  Moves moves;
};

// An order with a peak below `upper`, if the beam meets one. A peak below `lower` is worth no more
// than `lower`. The order is that of the program, which may run backwards.
std::optional<std::vector<OperatorIdx>> search_beam(const Program& program, Bytes lower,
                                                    Bytes upper, const BeamOptions& options,
                                                    Counter& counter);

}  // namespace memplan::order
