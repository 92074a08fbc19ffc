// One door to every solver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/exact.h"
#include "memplan/greedy.h"
#include "memplan/minimalloc.h"
#include "memplan/plan.h"
#include "memplan/problem.h"

namespace memplan {

enum class Objective {
  kFit,      // stop at the first plan within the capacity
  kMinPeak,  // find the smallest peak (within the capacity, if there is one)
};

struct SolveOptions {
  std::string solver = "auto";  // auto, greedy, minimalloc, exact
  Objective objective = Objective::kMinPeak;
  Budget budget;
  int threads = 1;  // never changes the answer, only the time
  std::uint64_t seed = 0;
  Stopper::Interrupt interrupt;  // asked every 20 ms; true stops the search
  GreedyOptions greedy;
  MiniMallocOptions minimalloc;
  ExactOptions exact;
};

// Throws std::invalid_argument, with the sentence of check(), for a problem that is not well
// formed, and for an unknown solver. Every plan returned has been through no verifier: that is
// the caller's to ask for, with code that knows no solver.
Plan solve(const Problem& problem, const SolveOptions& options);

}  // namespace memplan
