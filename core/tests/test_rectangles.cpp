// Tests of the two baselines from rectangle packing: every switch against brute force.
#include <limits>
#include <stdexcept>
#include <string>

#include "check.h"
#include "every_solver.h"
#include "memplan/rectangles.h"
#include "memplan/solve.h"
#include "oracle.h"
#include "published/rectangles/distances.h"
#include "published/rectangles/geometry.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr int kCspSets = 16;
constexpr int kMetaSets = 64;

CspOptions csp_switches(int bits) {
  CspOptions on;
  on.area_order = (bits & 1) != 0;
  on.forward_checking = (bits & 2) != 0;
  on.wasted_space = (bits & 4) != 0;
  on.dominance = (bits & 8) != 0;
  return on;
}

MetaCspOptions meta_switches(int bits) {
  MetaCspOptions on;
  on.forward_checking = (bits & 1) != 0;
  on.fewest_first = (bits & 2) != 0;
  on.area_order = (bits & 4) != 0;
  on.subsumption = (bits & 8) != 0;
  on.cliques = (bits & 16) != 0;
  on.symmetry = (bits & 32) != 0;
  return on;
}

Plan absolute(const Problem& problem, Bytes capacity, int bits = kCspSets - 1,
              std::int64_t nodes = kNoLimit) {
  Stopper stopper(kForever);
  return csp(problem, sweep(problem), capacity, csp_switches(bits), nodes, stopper);
}

Plan relative(const Problem& problem, Bytes capacity, int bits = kMetaSets - 1,
              std::int64_t nodes = kNoLimit) {
  Stopper stopper(kForever);
  return meta_csp(problem, sweep(problem), capacity, meta_switches(bits), nodes, stopper);
}

// Figure 2 of MiniMalloc: five buffers of four bytes.
Problem example(Bytes size = 4) {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size.assign(5, size);
  return problem;
}

// Loads of 12 at most, and no plan of 12.
Problem no_fit() {
  Problem problem;
  problem.start = {0, 5, 0, 5, 3, 1, 0, 1, 3, 2, 2};
  problem.end = {1, 6, 2, 6, 5, 4, 3, 3, 6, 5, 4};
  problem.size = {4, 4, 4, 4, 4, 3, 4, 1, 3, 1, 1};
  return problem;
}

// Buffers that all share one time.
Problem pile(const std::vector<Bytes>& sizes) {
  Problem problem;
  problem.size = sizes;
  problem.start.assign(sizes.size(), 0);
  problem.end.assign(sizes.size(), 1);
  return problem;
}

// With all that both support: no windows.
Problem random_problem(unsigned seed) {
  oracle::Generator generator(seed);
  const Bytes count = generator.pick(1, 5);
  Problem problem = generator.problem(count, 6, 2, oracle::features(static_cast<int>(seed % 32)));
  for (Gap& gap : problem.gaps) gap.lower = gap.upper = 0;
  return problem;
}

void check_legal(Problem problem, const Plan& plan, Bytes capacity) {
  problem.capacity = capacity;
  CHECK(plan.has_offsets());
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
}

void check_refuted(const Plan& plan) {
  CHECK_EQ(name(plan.status), std::string("infeasible"));
  CHECK(plan.offsets.empty());
  CHECK(!plan.conflict.empty());
}

void check_against_brute_force(const Problem& problem, Bytes least, Bytes limit, int bits) {
  if (least < limit) {
    check_legal(problem, absolute(problem, least, bits % kCspSets), least);
    check_legal(problem, relative(problem, least, bits), least);
  }
  if (least == 0) return;
  check_refuted(absolute(problem, least - 1, bits % kCspSets));
  check_refuted(relative(problem, least - 1, bits));
}

}  // namespace

// Tests that with any set of switches both give the answer of brute force.
TEST(every_switch_set_agrees_with_brute_force) {
  constexpr Bytes kLimit = 25;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const Problem problem = random_problem(seed);
    CHECK(memplan::check(problem).empty());
    const Bytes least = oracle::least_peak(problem, kLimit);
    const int stride = seed < 64 ? 1 : 7;
    for (int bits = static_cast<int>(seed) % stride; bits < kMetaSets; bits += stride) {
      check_against_brute_force(problem, least, kLimit, bits);
    }
  }
}

// Tests that the example of the paper fits in 12, and is refuted by its load in 11.
TEST(the_example_of_the_paper) {
  for (const auto& search : {absolute, relative}) {
    check_legal(example(), search(example(), 12, -1, kNoLimit), 12);
    const Plan refuted = search(example(), 11, -1, kNoLimit);
    check_refuted(refuted);
    CHECK(refuted.conflict == std::vector<BufferIdx>({0, 2, 4}));
    CHECK_EQ(refuted.stats.nodes, 0);
  }
}

// Tests that offsets are tried in steps of what divides all sizes, so that sizes in bytes take as
// many nodes as sizes in pages.
TEST(the_grid_is_as_coarse_as_the_sizes) {
  const std::int64_t nodes = absolute(example(), 12).stats.nodes;
  CHECK_EQ(absolute(example(4096), 3 * 4096).stats.nodes, nodes);
  const auto step = [](const Problem& problem) {
    return grid_step(problem, make_items(problem, sweep(problem), 1000));
  };
  Problem problem = pile({24, 36, 60});
  CHECK_EQ(step(problem), 12);
  problem.alignment = {1, 4, 24};  // divide the step, or the step divides them
  CHECK_EQ(step(problem), 12);
  problem.alignment = {1, 4, 9};  // with 9 the step is 3, and then 4 is in the way
  CHECK_EQ(step(problem), 1);
  problem.alignment.clear();
  problem.reserved = {{100, 102}};
  CHECK_EQ(step(problem), 6);
  problem.pin = {kNoOffset, kNoOffset, 3};
  CHECK_EQ(step(problem), 3);
  problem.reserved = {{901, 2000}};  // up to the capacity: nothing rests on it
  CHECK_EQ(step(problem), 3);
}

// Tests that each technique saves nodes where only a search can refute.
TEST(techniques_save_nodes) {
  const Problem problem = no_fit();
  check_refuted(absolute(problem, 12));
  for (int technique = 1; technique < kCspSets; technique *= 2) {
    const Plan without = absolute(problem, 12, kCspSets - 1 - technique);
    check_refuted(without);
    CHECK(absolute(problem, 12).stats.nodes < without.stats.nodes);
  }
  check_refuted(relative(problem, 12));
  for (int technique = 1; technique < kMetaSets; technique *= 2) {
    const Plan without = relative(problem, 12, kMetaSets - 1 - technique);
    check_refuted(without);
    CHECK(relative(problem, 12).stats.nodes < without.stats.nodes);
  }
}

// Tests that nothing is placed just above the floor, where only a strip would be left.
TEST(dominance_skips_strips) {
  Problem problem = pile({3, 3});
  problem.alignment = {1, 2};  // only with the first above the second, at 3
  constexpr int kForwardChecking = 2, kDominance = 8;
  CHECK_EQ(absolute(problem, 6, kForwardChecking).stats.nodes, 5);  // 0, 1, 2, 3; and 0
  CHECK_EQ(absolute(problem, 6, kForwardChecking + kDominance).stats.nodes, 3);
}

// Tests that free runs too short for a buffer do not count for it: with 2 placed at 3, runs of 3
// and 2 are free, enough for 2 and 2 but not for 4.
TEST(wasted_space_is_seen) {
  Problem problem = pile({2, 2, 2});
  problem.pin = {3, kNoOffset, kNoOffset};
  constexpr int kWastedSpaceOnly = 4;
  check_legal(problem, absolute(problem, 7, kWastedSpaceOnly), 7);
  problem = pile({2, 4});
  problem.pin = {3, kNoOffset};
  const Plan plan = absolute(problem, 7, kWastedSpaceOnly);
  check_refuted(plan);
  CHECK_EQ(plan.stats.nodes, 1);
}

// Tests that distances are closed under addition after every step, and come back as they were.
TEST(distances_are_longest_paths) {
  int possible = 0, impossible = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    oracle::Generator generator(seed);
    const Problem problem = pile({1, 2, 3, 4});
    const Items items = make_items(problem, sweep(problem), 14);
    Stopper stopper(kForever);
    Distances distances;
    CHECK(distances.build(items, stopper) == nullptr);
    const auto all = [&distances] {
      std::vector<Bytes> known;
      for (ItemIdx i = 0; i < 4; ++i) {
        known.insert(known.end(), {distances.lower(i), distances.upper(i)});
        for (ItemIdx j = 0; j < 4; ++j) known.push_back(distances.least(i, j));
      }
      return known;
    };
    const std::vector<Bytes> before = all();
    for (int step = 0; step < 8; ++step) {
      const auto i = static_cast<ItemIdx>(generator.pick(0, 3));
      const auto j = static_cast<ItemIdx>((i + generator.pick(1, 3)) % 4);
      const Bytes kind = generator.pick(0, 3), bytes = generator.pick(1, 6);
      const std::vector<Bytes> last = all();
      CHECK(distances.check_invariants());
      bool expected = distances.least(j, i) <= -bytes, added = true;
      if (kind == 0) {
        expected = bytes <= distances.upper(i);
        added = distances.raise(i, bytes);
        if (added) CHECK(distances.lower(i) >= bytes);
      } else if (kind == 1) {
        expected = 14 - bytes >= distances.lower(i);
        added = distances.sink(i, 14 - bytes);
        if (added) CHECK(distances.upper(i) <= 14 - bytes);
      } else {
        added = distances.add(i, j, bytes);
        if (added) CHECK(distances.least(i, j) >= bytes);
      }
      CHECK_EQ(added, expected);
      ++(added ? possible : impossible);
      if (!added) CHECK(all() == last);
      for (ItemIdx a = 0; a < 4; ++a) {
        CHECK(distances.lower(a) <= distances.upper(a));
        for (ItemIdx b = 0; b < 4; ++b) {
          CHECK(distances.lower(b) >= distances.lower(a) + distances.least(a, b) || a == b);
          CHECK(distances.upper(a) <= distances.upper(b) - distances.least(a, b) || a == b);
          for (ItemIdx c = 0; c < 4; ++c) {
            if (a == b || b == c) continue;
            CHECK(distances.least(a, c) >= distances.least(a, b) + distances.least(b, c));
          }
        }
      }
    }
    distances.undo(0);
    CHECK(all() == before);
  }
  CHECK(possible > 200 && impossible > 200);
}

// Tests that mirrored plans are left out only where top and bottom are alike.
TEST(symmetry_is_used_where_it_is) {
  constexpr int kSymmetry = 32, kAll = kMetaSets - 1;
  const auto saved = [](const Problem& problem) {
    return relative(problem, 12, kAll - kSymmetry).stats.nodes -
           relative(problem, 12, kAll).stats.nodes;
  };
  Problem problem = no_fit();
  CHECK(saved(problem) > 0);
  problem.alignment.assign(problem.size.size(), 1);
  CHECK(saved(problem) > 0);
  problem.alignment.back() = 2;
  CHECK_EQ(saved(problem), 0);
  problem = no_fit();
  problem.reserved = {{12, 13}};
  CHECK(saved(problem) > 0);  // beyond the capacity
  problem.size.back() = 0;
  problem.reserved = {{0, 1}};
  CHECK_EQ(saved(problem), 0);
}

// Tests that a node budget ends the search with the answer "unknown".
TEST(a_node_budget_ends_the_search) {
  for (const auto& search : {absolute, relative}) {
    const Plan plan = search(no_fit(), 12, 0, 20);
    CHECK_EQ(name(plan.status), std::string("unknown"));
    CHECK_EQ(plan.stats.nodes, 20);
    CHECK(plan.offsets.empty());
    CHECK(plan.stats.note.find("the budget ran out") == 0);
  }
}

// Tests that a stopper that is spent before the start ends the set-up too.
TEST(a_spent_stopper_ends_the_set_up) {
  oracle::Generator generator(7);
  const Problem problem = generator.problem(1500, 20, 1, {});
  Stopper stopper(0);
  stopper.look();
  const Plan plans[] = {csp(problem, sweep(problem), 1500, {}, kNoLimit, stopper),
                        meta_csp(problem, sweep(problem), 1500, {}, kNoLimit, stopper)};
  for (const Plan& plan : plans) {
    CHECK_EQ(name(plan.status), std::string("unknown"));
    CHECK_EQ(plan.stats.nodes, 0);
  }
}

// Tests that a deep search needs no deep call stack: a decision for each of many pairs.
TEST(a_long_chain_is_one_deep_path) {
  Problem problem;
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    problem.start.push_back(i);
    problem.end.push_back(i + 3);
    problem.size.push_back(1);
  }
  check_legal(problem, absolute(problem, 1000), 1000);
  check_legal(problem, relative(problem, 1000, 0), 1000);
  CHECK_EQ(relative(problem, 1000, 0).stats.nodes, (kCount - 1) + (kCount - 2));
}

// Tests that a window, a conflict or a group is refused by name, and not solved without it.
TEST(what_they_lack_is_refused) {
  const auto refusal = [](const Problem& problem, const char* solver) -> std::string {
    try {
      solve(problem, options_for(solver));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string solver : {"csp", "meta_csp"}) {
    Problem problem = example();
    CHECK_EQ(refusal(problem, solver.c_str()), std::string());
    problem.gaps = {{3, 10, 11, 0, 0}};
    CHECK_EQ(refusal(problem, solver.c_str()), std::string());
    problem.gaps = {{3, 10, 11, 0, 1}};
    CHECK_EQ(refusal(problem, solver.c_str()), solver + " does not support windows: choose exact.");
    problem.gaps.clear();
    problem.conflicts = oracle::relation(5, {{0, 1}});
    CHECK_EQ(refusal(problem, solver.c_str()),
             solver + " supports neither conflicts nor groups: choose exact.");
  }
}

// Tests that the least peak is found from a first plan, above a load that is no bound.
TEST(the_least_peak_is_asked_for) {
  for (const char* solver : {"csp", "meta_csp"}) {
    const Plan plan = solve(no_fit(), options_for(solver));
    check_legal(no_fit(), plan, 13);
    CHECK_EQ(plan.lower_bound, 13);
  }
}

// Tests that a problem too large for the matrix is refused with that reason.
TEST(a_matrix_has_its_limit) {
  Problem problem = pile(std::vector<Bytes>(4097, 1));
  const Plan plan = relative(problem, 5000);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.note, std::string("too many buffers for a matrix of distances"));
}

// Tests that a buffer without a legal offset is named.
TEST(a_misfit_is_named) {
  Problem problem = pile({2, 9});
  for (const auto& search : {absolute, relative}) {
    const Plan plan = search(problem, 8, -1, kNoLimit);
    check_refuted(plan);
    CHECK(plan.conflict == std::vector<BufferIdx>({1}));
  }
}

// Tests that sizes, pins and alignments near 2^62 do not overflow.
TEST(the_greatest_sizes_are_safe) {
  Problem problem = pile({kMaxBytes / 2, kMaxBytes / 2});
  for (const auto& search : {absolute, relative}) {
    for (int bits = 0; bits < kMetaSets; ++bits) {
      problem.alignment.clear();
      CHECK_EQ(search(problem, kMaxBytes, bits, kNoLimit).peak, kMaxBytes);
      problem.alignment = {kMaxBytes, 1};
      CHECK(search(problem, kMaxBytes, bits, kNoLimit).offsets ==
            std::vector<Bytes>({0, kMaxBytes / 2}));
      problem.alignment = {kMaxBytes, kMaxBytes};
      check_refuted(search(problem, kMaxBytes, bits, kNoLimit));
    }
  }
  // Far apart, and all of them free to be anywhere.
  Problem small = pile({1, 1, 1});
  small.pin = {kMaxBytes - 1, 0, kNoOffset};
  check_legal(small, relative(small, kMaxBytes), kMaxBytes);
  check_legal(small, absolute(small, kMaxBytes), kMaxBytes);
}

TEST_MAIN
