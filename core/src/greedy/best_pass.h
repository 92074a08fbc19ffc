// The best of several passes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "greedy/passes.h"
#include "memplan/plan.h"

namespace memplan {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// Some orders fragment badly on some problems: a pass is given up at so many times the work of
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

  // From here on, a pass must end below what is taken: one that cannot is given up at the first
  // buffer that shows it. Lowers `fastest` to the steps of a pass that was not given up.
  void take(Draft draft, const std::string& note, std::int64_t* fastest);
};

}  // namespace memplan
