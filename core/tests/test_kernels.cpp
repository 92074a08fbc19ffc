// Tests that bounds from kernels are true, and above those that need no search.
#include <vector>

#include "check.h"
#include "memplan/bounds.h"
#include "oracle.h"
#include "solve/incumbent.h"
#include "solve/kernels.h"

using namespace memplan;

namespace {

constexpr std::int64_t kVisits = 100'000;

}  // namespace

// Tests that no bound is above the least peak, for every width, with conflicts, with groups, and
// with both; and that some are above all that is known before.
TEST(bounds_of_kernels_are_true) {
  constexpr Bytes kLimit = 40;
  int raised = 0;
  int reached = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    oracle::Generator random(seed + 3);
    Problem problem = random.problem(static_cast<int>(random.pick(3, 6)), 6, 5, {});
    if (seed % 3 != 0) random.relate(&problem, 4);
    if (seed % 3 != 1) random.gather(&problem);
    const Bytes best = oracle::least_peak(problem, kLimit);
    if (best == kLimit) continue;
    SolveOptions options;
    options.solver = "auto";
    Incumbent incumbent(problem, options);
    incumbent.raise(lower_bound(problem, incumbent.sections()));
    const Bytes before = incumbent.lower_bound();
    Kernels kernels(incumbent);
    for (BufferIdx width = 0; width <= problem.count(); ++width) {
      kernels.round(width, kVisits);
      CHECK(incumbent.lower_bound() <= best);
    }
    raised += incumbent.lower_bound() > before;
    reached += before < best && incumbent.lower_bound() == best;
  }
  CHECK(raised > 10);
  CHECK(reached > 10);
}

// Tests that a group stays in one piece, and that what is set aside counts.
TEST(a_group_is_in_the_way) {
  // Of 0, 1 and 2, which touch, only 1 is live at first, with 4 bytes free below and above it; 3
  // needs 8. What is live all the time makes no difference.
  Problem problem;
  problem.start = {1, 0, 1, 0, 0};
  problem.end = {2, 2, 2, 1, 2};
  problem.size = {4, 4, 4, 8, 100};
  problem.group = {0, 0, 0, kNoGroup, kNoGroup};
  problem.lead = {0, 4, 8, 0, 0};
  SolveOptions options;
  Incumbent incumbent(problem, options);
  incumbent.raise(lower_bound(problem, incumbent.sections()));
  CHECK_EQ(incumbent.lower_bound(), 112);
  Kernels kernels(incumbent);
  for (BufferIdx width = 0; width <= 2; ++width) kernels.round(width, kVisits);
  CHECK_EQ(incumbent.lower_bound(), 116);
  CHECK_EQ(oracle::least_peak(problem, 130), 116);
}

// Tests that what would not stay at legal offsets is left alone, and what has neither conflicts nor
// groups.
TEST(restricted_problems_have_no_kernels) {
  oracle::Generator random(5);
  SolveOptions options;
  for (int which = 0; which < 5; ++which) {
    Problem problem = random.problem(8, 6, 5, {});
    random.relate(&problem, 3);
    if (which == 1) problem.pin = {3, -1, -1, -1, -1, -1, -1, -1};
    if (which == 2) problem.reserved = {{2, 3}};
    if (which == 3) problem.gaps = {{0, problem.start[0], problem.end[0], 0, 0}};
    if (which == 4) problem.alignment.assign(8, 2);
    Incumbent incumbent(problem, options);
    CHECK_EQ(Kernels(incumbent).round(0, kVisits), which == 0);
  }
  const Problem unrelated = random.problem(8, 6, 5, {});
  Incumbent incumbent(unrelated, options);
  CHECK(!Kernels(incumbent).round(0, kVisits));
}

TEST_MAIN
