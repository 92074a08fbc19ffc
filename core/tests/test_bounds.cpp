// Tests of the lower bounds: each rule on a problem of its own, all of them against brute force.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "bounds/heavy_clique.h"
#include "check.h"
#include "memplan/bounds.h"
#include "oracle.h"

using namespace memplan;

namespace {

Problem all_alive(const std::vector<Bytes>& sizes) {
  Problem problem;
  problem.size = sizes;
  problem.start.assign(sizes.size(), 0);
  problem.end.assign(sizes.size(), 1);
  return problem;
}

Bound bound_of(const Problem& problem) { return lower_bound(problem, sweep(problem)); }

void check_bound(const Problem& problem, Bytes bytes, const std::string& rule) {
  const Bound bound = bound_of(problem);
  CHECK_EQ(bound.bytes, bytes);
  CHECK_EQ(std::string(bound.rule), rule);
  CHECK_EQ(oracle::least_peak(problem, 1000), bytes);  // each of these is reached
}

}  // namespace

// Tests that the load is the bound of a plain problem, and names its section.
TEST(load) {
  Problem problem = all_alive({3, 4, 5});
  problem.start[2] = 1;
  problem.end[2] = 2;
  problem.start[1] = 0;
  problem.end[1] = 2;
  check_bound(problem, 9, "load");
  CHECK_EQ(bound_of(problem).section, 1);
}

// Tests that an empty problem has the bound 0.
TEST(empty) { CHECK_EQ(bound_of(Problem{}).bytes, 0); }

// Tests that a buffer counts with all its size, though it never holds all of it.
TEST(windowed_buffer_counts_whole) {
  Problem problem = all_alive({8});
  problem.gaps = {{0, 0, 1, 2, 4}};
  check_bound(problem, 8, "buffer");
}

// Tests that the top of a pin is a bound, also for a buffer of size 0.
TEST(pin_top) {
  Problem problem = all_alive({4, 0});
  problem.pin = {6, kNoOffset};
  check_bound(problem, 10, "buffer");
  problem.pin = {kNoOffset, 12};
  check_bound(problem, 12, "buffer");
}

// Tests that a buffer too large for the room below a reserved range counts from above it.
TEST(buffer_above_reserved) {
  Problem problem = all_alive({4, 0});
  problem.reserved = {{3, 5}};
  check_bound(problem, 9, "buffer");
}

// Tests that free bytes are counted around pins and reserved ranges.
TEST(load_around_fixed) {
  Problem problem = all_alive({2, 3, 4, 1});
  problem.pin = {4, kNoOffset, kNoOffset, kNoOffset};
  problem.reserved = {{8, 10}};
  // Free below: [0, 4) and [6, 8); 8 bytes to place, two of them above 10.
  const Bound bound = bound_of(problem);
  CHECK(bound.bytes >= 12);
  CHECK(bound.bytes <= oracle::least_peak(problem, 1000));
}

// Tests that sizes are rounded up where all offsets are aligned, but for the topmost.
TEST(granules) {
  Problem problem = all_alive({5, 5, 3});
  problem.alignment = {4, 8, 4};
  check_bound(problem, 17, "load in aligned granules");  // 8 + 8 + 4, less 3
}

// Tests that a window that does not begin with its buffer switches the granules off.
TEST(granules_and_windows) {
  Problem problem = all_alive({4, 2});
  problem.alignment = {4, 4};
  problem.gaps = {{0, 0, 1, 3, 4}};
  CHECK_EQ(oracle::least_peak(problem, 1000), 4);
  CHECK_EQ(bound_of(problem).bytes, 4);
}

// Tests that a bound is raised to the next sum of sizes on a base.
TEST(sums) {
  Problem problem = all_alive({4, 4, 4});
  problem.reserved = {{2, 3}};
  // The load around the range is 13, the stacks are 4, 8, 12 on 0 or on 3.
  check_bound(problem, 15, "sums of sizes");
}

// Tests the next reachable peak of plain problems: multiples, sums, and nothing beyond the last.
TEST(next_reachable) {
  const Problem problem = all_alive({6, 10, 10, 10, 10});
  const Sections sections = sweep(problem);
  const auto next = [&](Bytes at_least) {
    return next_reachable_peak(problem, sections, at_least);
  };
  CHECK_EQ(next(0), 0);
  CHECK_EQ(next(1), 6);
  CHECK_EQ(next(7), 10);
  CHECK_EQ(next(17), 20);
  CHECK_EQ(next(41), 46);
  CHECK_EQ(next(46), 46);
}

// Tests that alignment switches the sums off where it can lift a buffer, and only there.
TEST(next_reachable_with_alignment) {
  Problem problem = all_alive({6, 6});
  problem.alignment = {2, 2};
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), 7), 12);
  problem.alignment = {4, 4};
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), 7), 7);
}

// Tests that an empty buffer switches the sums off where its alignment lifts its group, and only
// there.
TEST(next_reachable_with_an_empty_member) {
  Problem problem = all_alive({3, 0, 6, 9});
  problem.alignment = {1, 7, 1, 1};
  problem.group = {0, 0, kNoGroup, kNoGroup};
  problem.lead = {0, 3, 0, 0};
  CHECK_EQ(oracle::least_peak(problem, 100), 20);
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), 19), 19);
  problem.alignment[1] = 3;
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), 19), 21);
  problem.alignment[1] = 7;
  problem.group = {0, kNoGroup, kNoGroup, kNoGroup};  // it rests at 0, and nothing with it
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), 19), 21);
}

// Tests that above half of 2^62, and at its end, limits still rise by what divides all peaks.
TEST(next_reachable_near_the_limit) {
  Problem problem = all_alive({Bytes{3} << 30, Bytes{1} << 30});
  const Sections sections = sweep(problem);
  CHECK_EQ(next_reachable_peak(problem, sections, (kMaxBytes / 2) + 1),
           kMaxBytes / 2 + (Bytes{1} << 30));
  CHECK_EQ(next_reachable_peak(problem, sections, kMaxBytes - 1), kMaxBytes);
  CHECK_EQ(next_reachable_peak(problem, sections, kMaxBytes + 1), kMaxBytes + 1);
  problem = all_alive({kMaxBytes - 1});
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), kMaxBytes), kMaxBytes + 1);
  problem = all_alive({kMaxBytes});
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), kMaxBytes), kMaxBytes);
}

// Tests that the lead of a buffer in no group is not read.
TEST(a_lead_without_a_group) {
  Problem problem = all_alive({2, 4});
  problem.group = {kNoGroup, kNoGroup};
  for (const Bytes lead : {INT64_MIN, Bytes{-1}, Bytes{3}, INT64_MAX}) {
    problem.lead = {lead, 0};
    CHECK_EQ(memplan::check(problem), std::string());
    CHECK_EQ(unit_of_peaks(problem, sweep(problem)), 2);
    check_bound(problem, 6, "load");
  }
}

// Tests the divisor of all peaks, and that it is 1 where peaks need not be sums.
TEST(unit) {
  Problem problem = all_alive({6, 10, 4});
  CHECK_EQ(unit_of_peaks(problem, sweep(problem)), 2);
  problem.reserved = {{1, 3}};
  CHECK_EQ(unit_of_peaks(problem, sweep(problem)), 1);
  problem.reserved.clear();
  problem.alignment = {4, 4, 4};
  CHECK_EQ(unit_of_peaks(problem, sweep(problem)), 1);
  CHECK_EQ(unit_of_peaks({}, sweep({})), 1);
}

// Tests that sums of thousands of large sizes are not enumerated, which would take too long.
TEST(next_reachable_is_bounded) {
  std::vector<Bytes> sizes;
  for (Bytes i = 0; i < 3000; ++i) sizes.push_back((Bytes{1} << 40) + 2 * i + 1);
  const Problem problem = all_alive(sizes);
  const Bytes at_least = (Bytes{1} << 51) + 1;
  CHECK_EQ(next_reachable_peak(problem, sweep(problem), at_least), at_least);
}

// Tests that buffers that all conflict count together, some by the list and some by their time.
TEST(listed_conflicts) {
  Problem problem = all_alive({3, 5, 7, 4});
  problem.start[2] = problem.start[3] = 1;
  problem.end[2] = problem.end[3] = 2;
  problem.conflicts = oracle::relation(4, {{0, 2}, {1, 2}, {1, 3}});
  check_bound(problem, 16, "conflicts");  // 1, 2 and 3
  CHECK(bound_of(problem).buffers == std::vector<BufferIdx>({1, 2, 3}));
  problem.conflicts = oracle::relation(4, {{0, 3}});
  check_bound(problem, 11, "load");
}

// Tests that a member is given up for two that weigh more: greed alone would keep it.
TEST(listed_conflicts_by_exchange) {
  Problem problem = all_alive({9, 10, 5, 6});
  for (BufferIdx b = 0; b < 4; ++b) {
    problem.start[b] = b;
    problem.end[b] = b + 1;
  }
  problem.conflicts = oracle::relation(4, {{0, 1}, {0, 2}, {0, 3}, {2, 3}});
  check_bound(problem, 20, "conflicts");
}

// Tests with more buffers than a word has bits that what is found is a clique to which no buffer
// can be added, at least as heavy as the fullest time; a planted one is found.
TEST(listed_conflicts_of_many) {
  oracle::Generator generator(17);
  for (int round = 0; round < 40; ++round) {
    Problem problem = generator.problem(static_cast<int>(generator.pick(60, 200)), 40, 9, {});
    generator.relate(&problem, 6);
    std::vector<BufferIdx> planted;
    if (round % 2 == 0) {
      std::vector<std::pair<BufferIdx, BufferIdx>> pairs;
      for (BufferIdx b = 1; b < problem.count(); b += 4) planted.push_back(b);
      for (const BufferIdx a : planted) {
        problem.size[a] += 20;
        for (const BufferIdx b : planted) {
          if (a < b) pairs.emplace_back(a, b);
        }
      }
      problem.conflicts = oracle::relation(problem.count(), pairs);
    }
    const Sections sections = sweep(problem);
    const std::vector<BufferIdx> clique = heavy_clique(problem, sections);
    const auto conflict = [&problem](BufferIdx a, BufferIdx b) {
      const bool listed = std::find(problem.conflicts.first(a), problem.conflicts.last(a), b) !=
                          problem.conflicts.last(a);
      return listed || (problem.start[a] < problem.end[b] && problem.start[b] < problem.end[a]);
    };
    for (const BufferIdx a : clique) {
      for (const BufferIdx b : clique) CHECK(a == b || conflict(a, b));
    }
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      const bool in = std::find(clique.begin(), clique.end(), b) != clique.end();
      CHECK(
          in || problem.size[b] == 0 ||
          !std::all_of(clique.begin(), clique.end(), [&](BufferIdx a) { return conflict(a, b); }));
    }
    const Bytes bytes = sum_of_sizes(problem, clique);
    CHECK(bytes >= bound_of_lifetimes(problem, sections).bytes);
    CHECK(bytes >= sum_of_sizes(problem, planted));
  }
}

// Tests that buffers that meet with windows only may lie in each other, and so do not count.
TEST(listed_conflicts_beside_windows) {
  Problem problem = all_alive({4, 4, 4});
  problem.gaps = {{0, 0, 1, 0, 1}, {1, 0, 1, 3, 4}};
  problem.conflicts = oracle::relation(3, {{0, 2}, {1, 2}});
  CHECK(bound_of(problem).bytes <= oracle::least_peak(problem, 1000));
}

// Tests that buffers that meet two by two at different times count together, whatever is between.
TEST(gaps) {
  Problem problem = all_alive({3, 5, 7, 4});
  problem.start = {0, 0, 1, 0};
  problem.end = {4, 2, 4, 1};
  problem.gaps = {{0, 1, 3, 0, 0}};
  // 0 and 1 meet at time 0, with 3; 1 and 2 at time 1; 0 and 2 only at time 3.
  check_bound(problem, 15, "conflicts");
  CHECK(bound_of(problem).buffers == std::vector<BufferIdx>({0, 1, 2}));
  problem.gaps = {{0, 1, 4, 0, 0}};  // they meet no more
  check_bound(problem, 12, "load");
}

// Tests on random problems with gaps that what is found is a clique of whole buffers, at least as
// heavy as the fullest time and not above brute force.
TEST(gaps_against_brute_force) {
  oracle::Generator generator(18);
  int better = 0;
  for (unsigned round = 0; round < check::rounds(100, 400); ++round) {
    Problem problem = generator.problem(5, 12, 5, {});
    for (BufferIdx b = 0; b < 5; ++b) {
      problem.start[b] = generator.pick(0, 2);
      problem.end[b] = generator.pick(6, 12);
      const Time begin = generator.pick(problem.start[b] + 1, 5);
      const Time end = generator.pick(begin + 1, problem.end[b]);
      const Bytes window = round % 4 == 0 ? problem.size[b] / 2 : 0;
      problem.gaps.push_back({b, begin, end, 0, window});
    }
    const Sections sections = sweep(problem);
    const std::vector<BufferIdx> clique = heavy_clique(problem, sections);
    for (const BufferIdx a : clique) {
      for (const BufferIdx b : clique) {
        CHECK(a == b || oracle::conflict(problem, a, 0, b, problem.size[a] - 1));
        CHECK(a == b || oracle::conflict(problem, a, problem.size[b] - 1, b, 0));
      }
    }
    const Bound bound = lower_bound(problem, sections);
    CHECK(bound.bytes <= oracle::least_peak(problem, 64));
    better += bound.bytes > bound_of_lifetimes(problem, sections).bytes ? 1 : 0;
  }
  CHECK(better > 5);
}

// Tests that a group counts from end to end, with what has been left out of it.
TEST(groups) {
  Problem problem = all_alive({2, 3});
  problem.end[0] = 1;
  problem.start[1] = 1;
  problem.end[1] = 2;
  problem.group = {7, 7};
  problem.lead = {6, 1};
  check_bound(problem, 7, "group");
  CHECK(bound_of(problem).buffers == std::vector<BufferIdx>({0, 1}));
  problem.pin = {kNoOffset, 5};
  check_bound(problem, 12, "buffer");
  problem.lead = {0, 2};  // the first is below the pinned one, where it has room
  check_bound(problem, 8, "buffer");
}

// Tests that sizes, pins and reserved ranges at 2^62 do not overflow.
TEST(extremes) {
  Problem problem = all_alive({kMaxBytes});
  problem.alignment = {kMaxBytes};
  CHECK_EQ(bound_of(problem).bytes, kMaxBytes);
  problem.pin = {0};
  CHECK_EQ(bound_of(problem).bytes, kMaxBytes);
  problem.pin = {kNoOffset};
  problem.reserved = {{0, kMaxBytes}};
  CHECK_EQ(bound_of(problem).bytes, kMaxBytes);  // there is no plan
  problem = all_alive({kMaxBytes, kMaxBytes, kMaxBytes});
  for (BufferIdx b = 0; b < 3; ++b) {
    problem.start[b] = b;
    problem.end[b] = b + 1;
  }
  problem.conflicts = oracle::relation(3, {{0, 1}, {0, 2}, {1, 2}});
  CHECK(bound_of(problem).bytes > kMaxBytes);
  problem.conflicts = {};
  problem.group = {0, 0, 0};
  problem.lead = {0, kMaxBytes, kMaxBytes};
  CHECK(bound_of(problem).bytes > kMaxBytes);
  problem.size = {0, kMaxBytes, 0};
  problem.pin = {kMaxBytes, kNoOffset, kNoOffset};
  CHECK(bound_of(problem).bytes > kMaxBytes);
}

// Tests on random problems of every mix of constraints that no bound is above the least peak, nor
// is the next reachable peak of anything up to it; and that every rule had its turn.
TEST(never_above_brute_force) {
  oracle::Generator generator(3);
  std::set<std::string> rules;
  int tight = 0;
  for (int round = 0; round < 1500; ++round) {
    const oracle::Features with = oracle::features(round % 16);
    const Problem problem = generator.problem(generator.pick(1, 4), 4, 5, with);
    CHECK_EQ(memplan::check(problem), "");
    const Bytes least = oracle::least_peak(problem, 64);
    CHECK(least < 64);
    for (const Contract contract : {Contract::kNo, Contract::kYes}) {
      const Sections sections = sweep(problem, contract);
      const Bound bound = lower_bound(problem, sections);
      CHECK(bound.bytes <= least);
      rules.insert(bound.rule);
      tight += bound.bytes == least ? 1 : 0;
      for (Bytes at = 0; at <= least; ++at) {
        CHECK(next_reachable_peak(problem, sections, at) <= least);
      }
      CHECK_EQ(least % unit_of_peaks(problem, sections), 0);
    }
  }
  CHECK_EQ(rules.size(), std::size_t{5});
  CHECK(tight > 2000);  // of 3000
}

// Tests the same with listed conflicts and groups.
TEST(never_above_brute_force_with_conflicts_and_groups) {
  oracle::Generator generator(4);
  std::set<std::string> rules;
  int tight = 0, coarse = 0;
  for (unsigned round = 0; round < check::rounds(500, 1500); ++round) {
    Problem problem = generator.problem(generator.pick(2, 5), 5, 5, oracle::features(round % 16));
    if (round % 2 == 0) {
      for (Bytes& size : problem.size) size *= 2;
    }
    if (round % 3 != 0) generator.relate(&problem, 2);
    if (round % 3 != 1) generator.gather(&problem);
    const Bytes least = oracle::least_peak(problem, 64);
    const Sections sections = sweep(problem);
    const Bound bound = lower_bound(problem, sections);
    if (least == 64) continue;  // pins that a group cannot keep
    CHECK(bound.bytes <= least);
    rules.insert(bound.rule);
    tight += bound.bytes == least ? 1 : 0;
    for (Bytes at = 0; at <= least; ++at) {
      CHECK(next_reachable_peak(problem, sections, at) <= least);
    }
    const Bytes unit = unit_of_peaks(problem, sections);
    CHECK_EQ(least % unit, 0);
    coarse += unit > 1 && !problem.group.empty() ? 1 : 0;
  }
  CHECK_EQ(rules.count("conflicts") + rules.count("group"), std::size_t{2});
  CHECK(coarse > 30);
  CHECK(tight > 260);
}

TEST_MAIN
