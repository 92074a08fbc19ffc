// What the plans of all solvers claim, against brute force: offsets, status, bound and the buffers
// that are named where nothing fits. The problems are of a handful of buffers with every mix of
// constraints, and most of them are degenerate somewhere.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "every_solver.h"
#include "memplan/solve.h"
#include "model/subproblem.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr Bytes kLimit = 49;  // where the brute force gives up

Bytes least_peak(const Problem& problem) { return oracle::least_peak(problem, kLimit); }

Problem random_problem(unsigned seed) {
  oracle::Generator random(seed);
  const Bytes count = random.edge(1, 6);
  Problem problem =
      random.problem(count, random.edge(1, 5), count > 4 ? 3 : 5,
                     oracle::features(static_cast<int>(random.pick(0, oracle::kFeatureSets - 1))));
  if (random.pick(0, 2) == 0) random.relate(&problem, random.pick(1, 4));
  if (random.pick(0, 1) == 0) random.gather(&problem);
  return problem;
}

bool takes(const Solver& solver, const Problem& problem) {
  const bool windowed = std::any_of(problem.gaps.begin(), problem.gaps.end(),
                                    [](const Gap& gap) { return gap.lower < gap.upper; });
  return ((solver.lacks & kWindows) == 0 || !windowed) &&
         ((solver.lacks & kPlaces) == 0 || !limits_places(problem)) &&
         ((solver.lacks & kRelations) == 0 || !has_relations(problem));
}

// The first claim of a plan that is not true, or nothing. `best` is the least peak of all plans,
// whatever the capacity.
std::string false_claim(const Problem& problem, Objective objective, const Plan& plan, Bytes best) {
  const Bytes capacity = problem.capacity.value_or(kMaxBytes);
  if (plan.has_offsets()) {
    if (!oracle::valid(problem, plan.offsets)) return "the plan is not valid";
    if (plan.peak != oracle::peak(problem, plan.offsets)) return "the peak is not that of the plan";
    if (plan.lower_bound > plan.peak) return "the bound is above the peak";
  }
  if (best < kLimit && plan.lower_bound > best) return "there is a plan below the bound";
  switch (plan.status) {
    case Status::kOptimal:
      if (!plan.has_offsets()) return "optimal without a plan";
      if (plan.peak != plan.lower_bound) return "optimal above the bound";
      return plan.peak > best ? "optimal above the optimum" : "";
    case Status::kFits:
      if (!plan.has_offsets() || objective != Objective::kFit) return "no such fit was asked for";
      return plan.peak == plan.lower_bound ? "a fit at the bound that is not called optimal" : "";
    case Status::kInfeasible:
      if (plan.has_offsets()) return "infeasible with a plan";
      if (best < kLimit && best <= capacity) return "infeasible, but there is a plan";
      if (!plan.conflict.empty() && best < kLimit) {
        const Bytes of_these = least_peak(subproblem(problem, plan.conflict));
        if (of_these <= capacity) return "the named buffers have a plan";
      }
      return {};
    case Status::kFeasible:
      return plan.has_offsets() ? "" : "feasible without a plan";
    case Status::kUnknown:
      return plan.has_offsets() ? "unknown with a plan" : "";
  }
  return "no status";
}

// What a complete solver must not leave open: its budget is far above what such problems take.
std::string left_open(const Solver& solver, const Plan& plan) {
  const bool open = plan.status == Status::kFeasible || plan.status == Status::kUnknown;
  return solver.proves && open ? "a complete solver left it open" : "";
}

void check_claims(const Problem& problem, Objective objective, unsigned seed, Bytes best) {
  for (const Solver& solver : every_solver()) {
    if (!takes(solver, problem)) continue;
    SolveOptions options = options_for(solver.name);
    options.objective = objective;
    options.seed = seed;
    options.threads = seed % 64 == 0 ? 2 : 1;
    // A few nodes show the bounds on the way.
    const bool ample = seed % 5 != 0;
    options.budget.nodes = ample ? 20000 : seed / 5 % 8;
    const Plan plan = solve(problem, options);
    std::string fault = false_claim(problem, objective, plan, best);
    if (fault.empty() && ample) fault = left_open(solver, plan);
    if (!fault.empty()) {
      throw std::runtime_error(
          "seed " + std::to_string(seed) + ", " + solver.name +
          (objective == Objective::kFit ? ", fit" : ", min_peak") +
          (problem.capacity ? " in " + std::to_string(*problem.capacity) : "") + ": " + fault +
          " (" + name(plan.status) + ", peak " + std::to_string(plan.peak) + ", bound " +
          std::to_string(plan.lower_bound) + ", best " + std::to_string(best) + ")");
    }
  }
}

}  // namespace

TEST(no_solver_claims_what_brute_force_refutes) {
  // With CLAIMS_FROM, a campaign goes on where another ended.
  const char* from = std::getenv("CLAIMS_FROM");
  const unsigned first = from == nullptr ? 0 : static_cast<unsigned>(std::atol(from));
  for (unsigned seed = first; seed < first + check::rounds(3000, 1'000'000); ++seed) {
    Problem problem = random_problem(seed);
    const Bytes best = least_peak(problem);
    // The capacities around the optimum are where an answer can be wrong by one.
    const Bytes near = std::max<Bytes>(1, best + static_cast<Bytes>(seed / 3 % 4) - 2);
    if (seed % 3 != 0) problem.capacity = near;
    check_claims(problem, seed % 3 == 1 ? Objective::kFit : Objective::kMinPeak, seed, best);
  }
}

TEST_MAIN
