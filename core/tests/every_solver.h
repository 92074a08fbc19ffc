// The solvers of the core and the published ones, by name.
#pragma once

#include <string>
#include <vector>

#include "memplan/published.h"
#include "memplan/solve.h"

namespace memplan {

inline std::vector<Solver> every_solver() {
  std::vector<Solver> all = solvers();
  for (const Solver& each : published_solvers()) all.push_back(each);
  return all;
}

inline SolveOptions options_for(const std::string& solver, const PublishedOptions& how = {}) {
  SolveOptions options;
  options.solver = solver;
  options.outside = published_solver(solver, how);
  return options;
}

}  // namespace memplan
