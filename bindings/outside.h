// Solvers that another native module hands to memplan._core.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "caller.h"
#include "memplan/solve.h"

namespace memplan::python {

// A solver with the options of a call, as an object of Python.
struct Outside {
  std::shared_ptr<const OutsideSolver> solver;
  // Empty, or told before a search who answers for what runs in Python.
  std::function<void(Caller*)> meet;
};

// The options of a call that all solvers have. `outside` may be null.
inline SolveOptions asked(const std::string& solver, bool minimize, std::optional<double> seconds,
                          std::optional<std::int64_t> nodes, int threads, std::uint64_t seed,
                          const Outside* outside, Caller* caller) {
  SolveOptions options;
  options.solver = solver;
  options.objective = minimize ? Objective::kMinPeak : Objective::kFit;
  limit(&options.budget, seconds, nodes);
  options.threads = threads;
  options.seed = seed;
  if (outside != nullptr) {
    options.outside = outside->solver;
    if (outside->meet) outside->meet(caller);
  }
  return options;
}

}  // namespace memplan::python
