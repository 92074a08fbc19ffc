#include <string>

#include "c_api/door.h"
#include "memplan/c_api_published.h"
#include "memplan/published.h"
#include "solve/alone.h"

namespace memplan {

namespace {

std::string try_published(const Problem& problem, const SolveOptions& options, Plan* plan) {
  SolveOptions chosen = options;
  chosen.outside = published_solver(options.solver);
  if (chosen.outside) return try_solve(problem, chosen, plan);
  std::string names;
  for (const Solver& each : published_solvers()) {
    names += std::string(names.empty() ? "" : ", ") + each.name;
  }
  return "there is no published solver '" + options.solver + "': choose one of " + names + ".";
}

}  // namespace

}  // namespace memplan

memplan_plan* memplan_solve_published(const memplan_problem* problem,
                                      const memplan_options* options, char* error,
                                      size_t error_size) {
  return memplan::c_api::solved(problem, options, error, error_size, memplan::try_published);
}
