// Tests that search and prover, apart or side by side, on one thread or two, give one answer.
#include <string>

#include "check.h"
#include "memplan/solve.h"
#include "oracle.h"

using namespace memplan;

namespace {

Problem random_problem(unsigned seed, Bytes count, const oracle::Features& with = {}) {
  oracle::Generator random(seed);
  return random.problem(count, 8, 9, with);
}

Plan least(const Problem& problem, const char* solver, int threads = 1,
           std::int64_t nodes = 1000000) {
  SolveOptions options;
  options.solver = solver;
  options.threads = threads;
  options.budget.nodes = nodes;
  return solve(problem, options);
}

}  // namespace

TEST(search_and_prover_apart_agree_on_every_optimum) {
  for (unsigned seed = 0; seed < check::rounds(200, 1500); ++seed) {
    const Bytes count = 4 + static_cast<Bytes>(seed % 20);
    const Problem problem = random_problem(seed, count);
    const Plan together = least(problem, "exact");
    const Plan apart = least(problem, "prover");
    CHECK_EQ(name(apart.status), std::string("optimal"));
    CHECK_EQ(name(together.status), std::string("optimal"));
    CHECK_EQ(apart.peak, together.peak);
    CHECK(oracle::valid(problem, apart.offsets));
    // The search alone: a fit at the optimum, none a byte below.
    Stopper stopper(1e9);
    const auto fit = [&](Bytes capacity) {
      return exact_fit(problem, sweep(problem), capacity, {}, 1000000, 1, 0, stopper).status;
    };
    CHECK(fit(apart.peak) == Status::kFits);
    CHECK(apart.peak == 0 || fit(apart.peak - 1) == Status::kInfeasible);
    if (count <= 6) CHECK_EQ(apart.peak, oracle::least_peak(problem, apart.peak));
  }
}

TEST(seven_buffers_against_brute_force) {
  for (unsigned seed = 0; seed < check::rounds(25, 100); ++seed) {
    oracle::Generator random(seed);
    const Problem problem = random.problem(7, 7, 4, {});
    const Bytes best = oracle::least_peak(problem, 29);
    CHECK_EQ(least(problem, "exact").peak, best);
    CHECK_EQ(least(problem, "prover").peak, best);
  }
}

TEST(two_threads_give_the_answer_of_one) {
  for (unsigned seed = 0; seed < check::rounds(8, 30); ++seed) {
    oracle::Generator random(seed);
    Problem problem;
    for (int b = 0; b < 40; ++b) {
      problem.start.push_back(random.pick(0, 20));
      problem.end.push_back(problem.start.back() + random.pick(3, 12));
      problem.size.push_back(random.pick(20, 110));
    }
    const Plan one = least(problem, "exact", 1, 20000);
    for (const int threads : {2, 3}) {
      const Plan other = least(problem, "exact", threads, 20000);
      CHECK(one.status == other.status);
      CHECK(one.offsets == other.offsets);
      CHECK_EQ(one.lower_bound, other.lower_bound);
      CHECK_EQ(one.stats.nodes, other.stats.nodes);
    }
  }
}

TEST(nodes_and_conflicts_stay_within_the_budget) {
  for (const char* solver : {"exact", "prover", "auto"}) {
    const Problem problem = random_problem(3, 60);
    for (const std::int64_t nodes : {1, 10, 100, 3000}) {
      const Plan plan = least(problem, solver, 1, nodes);
      CHECK(plan.stats.nodes <= nodes + 1);
      CHECK(!plan.has_offsets() || oracle::valid(problem, plan.offsets));
    }
  }
}

TEST(progress_is_told_as_it_is_made) {
  const Problem problem = random_problem(11, 40);
  std::vector<Progress> seen;
  SolveOptions options;
  options.solver = "exact";
  options.progress = [&seen](const Progress& progress) { seen.push_back(progress); };
  const Plan plan = solve(problem, options);
  CHECK(!seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    CHECK(seen[i].lower_bound >= seen[i - 1].lower_bound);
    CHECK(!seen[i - 1].has_plan || seen[i].peak <= seen[i - 1].peak);
    CHECK(seen[i].seconds >= seen[i - 1].seconds);
  }
  CHECK_EQ(seen.back().peak, plan.peak);
}

TEST_MAIN
