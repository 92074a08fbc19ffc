// Keeps the best of several passes, and the limits that it sets for the next one.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "greedy/passes.h"
#include "memplan/plan.h"

namespace memplan {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Some orders fragment badly on some problems, so a pass is given up at so many times the work of
// the fastest one of its kind.
constexpr std::int64_t kPatience = 4;

inline std::int64_t times(std::int64_t factor, std::int64_t steps) {
  return steps > kNoLimit / factor ? kNoLimit : factor * steps;
}

struct BestPass {
  Limits limits;  // for the next pass
  Plan plan;

  BestPass(const Problem& problem, std::int64_t node_budget);

  bool enough(Bytes target, Stopper& stopper) const {
    return (plan.has_offsets() && plan.peak <= target) || limits.nodes <= 0 || stopper.look();
  }

  // Keeps the draft if it is the best, and lowers the limits: a later pass is given up at the first
  // buffer that shows that it cannot be better. Lowers `fastest` to the steps of a pass that was
  // not given up.
  void take(Draft draft, const std::string& note, std::int64_t* fastest);
};

}  // namespace memplan
