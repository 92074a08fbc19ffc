// Tests that bounds from stretches of time are true, under every mix of constraints.
#include "check.h"
#include "oracle.h"
#include "solve/incumbent.h"
#include "solve/windows.h"

using namespace memplan;

namespace {

// Buffers whose load is the same everywhere, so that every byte above it has to be proved.
Problem flat(oracle::Generator& random, int steps) {
  Problem problem;
  std::vector<int> live;
  for (Bytes size : {31, 43, 52, 60, 67, 107}) {
    live.push_back(problem.count());
    problem.start.push_back(0);
    problem.size.push_back(size);
  }
  problem.end.assign(live.size(), steps);
  for (Time t = 1; t < steps; ++t) {
    const auto first = static_cast<std::size_t>(random.pick(0, 5));
    const std::size_t second = (first + 1 + static_cast<std::size_t>(random.pick(0, 4))) % 6;
    const Bytes sum = problem.size[live[first]] + problem.size[live[second]];
    const Bytes part = random.pick(sum / 4, sum - sum / 4);
    for (const std::size_t which : {first, second}) {
      problem.end[live[which]] = t;
      live[which] = problem.count();
      problem.start.push_back(t);
      problem.end.push_back(steps);
      problem.size.push_back(which == first ? part : sum - part);
    }
  }
  return problem;
}

}  // namespace

TEST(bounds_of_windows_are_true_under_every_mix_of_constraints) {
  constexpr Bytes kLimit = 36;
  for (unsigned seed = 0; seed < check::rounds(200, 600); ++seed) {
    oracle::Generator random(seed + 7);
    const Problem problem = random.problem(6, 6, 5, oracle::features(seed % oracle::kFeatureSets));
    const Bytes best = oracle::least_peak(problem, kLimit);
    if (best == kLimit) continue;
    SolveOptions options;
    Incumbent incumbent(problem, options);
    Windows windows(incumbent);
    for (BufferIdx width = 2; width <= 3; ++width) windows.round(width, 4000);
    CHECK(incumbent.lower_bound() <= best);
  }
}

TEST(a_window_raises_the_bound_above_the_load) {
  int raised = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    oracle::Generator random(seed);
    const Problem problem = flat(random, 20);
    SolveOptions options;
    Incumbent incumbent(problem, options);
    CHECK_EQ(incumbent.lower_bound(), Bytes{360});
    Windows windows(incumbent);
    CHECK(windows.round(14, 40000));
    raised += incumbent.lower_bound() > 360 ? 1 : 0;
    options.solver = "exact";
    const Plan plan = solve(problem, options);
    CHECK_EQ(name(plan.status), std::string("optimal"));
    CHECK(incumbent.lower_bound() <= plan.peak);
  }
  CHECK(raised >= 5);
}

TEST(windows_as_wide_as_the_problem_are_left_to_others) {
  oracle::Generator random(1);
  const Problem problem = random.problem(6, 6, 5, {});
  SolveOptions options;
  Incumbent incumbent(problem, options);
  CHECK(!Windows(incumbent).round(6, 4000));
}

TEST_MAIN
