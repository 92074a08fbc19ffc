// Tests of the table of published searches, and of their door for C.
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "every_solver.h"
#include "memplan/c_api_published.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNodes = 500;

memplan_problem* problem_of(const Problem& problem) {
  return memplan_problem_create(problem.size.size(), problem.start.data(), problem.end.data(),
                                problem.size.data(), nullptr, 0);
}

memplan_options options_of_c(const char* solver) {
  memplan_options options;
  memplan_default_options(&options, sizeof options);
  options.solver = solver;
  options.nodes = kNodes;
  return options;
}

}  // namespace

// Tests that no published solver takes a name of the core, and that the core has none of theirs.
TEST(a_name_is_of_one_library) {
  for (const Solver& each : solvers()) CHECK(published_solver(each.name) == nullptr);
  CHECK(published_solver("best") == nullptr);
  for (const Solver& each : published_solvers()) {
    CHECK_EQ(published_solver(each.name)->is.name, each.name);
    SolveOptions options;
    options.solver = each.name;
    bool refused = false;
    try {
      solve(Problem{}, options);
    } catch (const std::invalid_argument& error) {
      refused = std::string(error.what()).find("there is no solver") == 0;
    }
    CHECK(refused);
  }
}

// Tests that options are those of the call, and not of a later one.
TEST(a_solver_keeps_its_options) {
  PublishedOptions how;
  how.telamalloc.select = "tallest";
  const auto wrong = published_solver("telamalloc", how);
  how.telamalloc.select = "size";
  SolveOptions options;
  options.objective = Objective::kFit;
  Problem problem = oracle::Generator(3).problem(6, 8, 9, {});
  problem.capacity = 60;
  options.outside = published_solver("telamalloc", how);
  CHECK(solve(problem, options).has_offsets());
  options.outside = wrong;
  bool refused = false;
  try {
    solve(problem, options);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

// Tests that the door for C gives the plans of solve(), for each of the solvers.
TEST(the_door_for_c_gives_the_same_plans) {
  for (const Solver& each : published_solvers()) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Problem problem = oracle::Generator(seed).problem(4 + seed % 9, 8, 9, {});
      SolveOptions options = options_for(each.name);
      options.budget.nodes = kNodes;
      const Plan plan = solve(problem, options);
      memplan_problem* asked = problem_of(problem);
      const memplan_options given = options_of_c(each.name);
      memplan_plan* found = memplan_solve_published(asked, &given, nullptr, 0);
      CHECK_EQ(memplan_plan_peak(found), plan.peak);
      CHECK_EQ(memplan_plan_lower_bound(found), plan.lower_bound);
      CHECK_EQ(memplan_plan_nodes(found), plan.stats.nodes);
      CHECK_EQ(std::string(memplan_plan_solver(found)), plan.stats.solver);
      memplan_plan_free(found);
      memplan_problem_free(asked);
    }
  }
}

TEST(the_door_for_c_names_those_that_it_has) {
  memplan_problem* problem = problem_of(oracle::Generator(1).problem(4, 8, 9, {}));
  char error[200] = "";
  for (const char* name : {"auto", "best", static_cast<const char*>(nullptr)}) {
    const memplan_options options = options_of_c(name);
    CHECK(memplan_solve_published(problem, &options, error, sizeof error) == nullptr);
    CHECK(std::string(error).find("minimalloc, telamalloc, somas, csp, meta_csp") !=
          std::string::npos);
  }
  CHECK(memplan_solve_published(nullptr, nullptr, error, sizeof error) == nullptr);
  memplan_problem_free(problem);
}

TEST_MAIN
