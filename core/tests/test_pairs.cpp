// Tests of the search over pairs, by brute force and on problems made for one rule each.
#include <limits>

#include "check.h"
#include "exact/pair_propagation.h"
#include "exact/pairs.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

Plan fit(const Problem& problem, Bytes capacity, std::int64_t nodes = kNoLimit) {
  Stopper stopper(kForever);
  return pairs_fit(problem, sweep(problem), capacity, nodes, stopper);
}

void check_fits(Problem problem, Bytes capacity) {
  const Plan plan = fit(problem, capacity);
  CHECK_EQ(name(plan.status), std::string("fits"));
  problem.capacity = capacity;
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
}

void check_infeasible(const Problem& problem, Bytes capacity) {
  const Plan plan = fit(problem, capacity);
  CHECK_EQ(name(plan.status), std::string("infeasible"));
  CHECK(plan.offsets.empty());
  CHECK(!plan.conflict.empty());
}

// Row 0 holds its first byte during [0, 1) and its last four during [1, 2); row 1 is one byte that
// is live throughout. So row 1 may lie below row 0, above it, or 1 to 3 bytes up in its nook.
//
//   8 +--+##+
//     |  |##|
//   4 |  +##+
//     |  nook
//   1 +##+  |
//   0 +##+--+
Problem nook() {
  Problem problem;
  problem.start = {0, 0};
  problem.end = {2, 2};
  problem.size = {8, 1};
  problem.gaps = {{0, 0, 1, 0, 1}, {0, 1, 2, 4, 8}};
  return problem;
}

// All alive together.
Problem stack(std::vector<Bytes> sizes) {
  Problem problem;
  problem.start.assign(sizes.size(), 0);
  problem.end.assign(sizes.size(), 1);
  problem.size = std::move(sizes);
  return problem;
}

// A propagation with all that it refers to.
struct Bench {
  Bench(const Problem& p, Bytes capacity)
      : problem(p),
        sections(sweep(problem)),
        items(make_items(problem, sections, capacity)),
        listed(relations.build(items, stopper) == nullptr),
        bounds(items, relations, stopper) {}

  Problem problem;
  Sections sections;
  Items items;
  Stopper stopper{kForever};
  Relations relations;
  bool listed;
  Propagation bounds;
};

}  // namespace

// Tests that the differences of two plain buffers are "below" and "above".
TEST(plain_buffers_have_two_ranges) {
  const Bench bench(stack({3, 5}), 100);
  CHECK(bench.listed);
  CHECK_EQ(bench.relations.all.size(), 1u);
  CHECK_EQ(bench.relations.allowed.size(), 2u);
  CHECK_EQ(bench.relations.allowed[0].to, -5);
  CHECK_EQ(bench.relations.allowed[1].from, 3);
}

// Tests that a nook between two windows is a range of its own.
TEST(windows_open_a_nook) {
  const Bench bench(nook(), 100);
  CHECK_EQ(bench.relations.allowed.size(), 3u);
  CHECK_EQ(bench.relations.allowed[0].to, -1);
  CHECK_EQ(bench.relations.allowed[1].from, 1);
  CHECK_EQ(bench.relations.allowed[1].to, 3);
  CHECK_EQ(bench.relations.allowed[2].from, 8);
  check_fits(nook(), 8);
  Problem two = nook();
  for (std::vector<Bytes>* column : {&two.start, &two.end, &two.size}) {
    column->push_back(column->back());
  }
  check_fits(two, 8);
  two.size[1] = two.size[2] = 2;
  check_infeasible(two, 8);
  check_fits(two, 10);
}

// Tests that two nooks that just touch leave one difference between them.
TEST(touching_windows_leave_one_difference) {
  Problem problem = nook();
  problem.gaps[1].lower = 2;
  const Bench bench(problem, 100);
  CHECK_EQ(bench.relations.allowed.size(), 3u);
  CHECK_EQ(bench.relations.allowed[1].from, 1);
  CHECK_EQ(bench.relations.allowed[1].to, 1);
  problem.gaps[1].lower = 1;
  const Bench closed(problem, 100);
  CHECK_EQ(closed.relations.allowed.size(), 2u);
}

// Tests that bounds and open ranges stay legal, and come back, through random choices.
TEST(a_propagation_keeps_its_invariants) {
  int closed = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    oracle::Generator generator(seed);
    const Problem problem =
        generator.problem(6, 6, 4, oracle::features(static_cast<int>(seed % 16)));
    Bench bench(problem, 18);
    CHECK(bench.listed && check_invariants(bench.items) && bench.relations.check_invariants());
    if (!bench.bounds.fixpoint()) continue;
    std::vector<Propagation::Mark> marks;
    std::vector<std::vector<Bytes>> before;
    const auto bounds = [&bench] {
      std::vector<Bytes> all;
      for (ItemIdx i = 0; i < bench.items.count(); ++i) {
        all.push_back(bench.bounds.lower(i));
        all.push_back(bench.bounds.upper(i));
      }
      return all;
    };
    for (int step = 0; step < 20 && !bench.relations.all.empty(); ++step) {
      CHECK(bench.bounds.check_invariants());
      const auto r = static_cast<std::int32_t>(
          generator.pick(0, static_cast<Bytes>(bench.relations.all.size()) - 1));
      const std::int32_t first = bench.bounds.first(r), last = bench.bounds.last(r);
      bool alive = true;
      if (first < last) {
        marks.push_back(bench.bounds.mark());
        before.push_back(bounds());
        const auto split = static_cast<std::int32_t>(generator.pick(first, last - 1));
        if (generator.pick(0, 1) == 0) {
          bench.bounds.restrict(r, first, split);
        } else {
          bench.bounds.restrict(r, split + 1, last);
        }
        alive = bench.bounds.fixpoint();
        closed += alive ? 0 : 1;
      }
      if ((alive && generator.pick(0, 3) != 0) || marks.empty()) continue;
      bench.bounds.undo(marks.back());
      CHECK(bounds() == before.back());
      marks.pop_back();
      before.pop_back();
    }
  }
  CHECK(closed > 50);
}

// Tests that the answer is that of brute force with any mix of constraints.
TEST(every_mix_of_constraints_agrees_with_brute_force) {
  constexpr Bytes kLimit = 28;
  int searched = 0, refuted = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    oracle::Generator generator(seed);
    const oracle::Features features = oracle::features(static_cast<int>(seed) % 16);
    const Bytes count = generator.pick(1, 5);
    const Problem problem = generator.problem(count, 6, 5, features);
    CHECK(memplan::check(problem).empty());
    const Bytes least = oracle::least_peak(problem, kLimit);
    if (least < kLimit) {
      check_fits(problem, least);
      searched += fit(problem, least).stats.nodes > 0;
    }
    if (least == 0) continue;
    check_infeasible(problem, least - 1);
    refuted += fit(problem, least - 1).stats.nodes > 0;
  }
  CHECK(searched > 10);  // otherwise this tests first fit and the root only
  CHECK(refuted > 10);
}

// Tests the same with listed conflicts, with groups, and with both.
TEST(conflicts_and_groups_agree_with_brute_force) {
  constexpr Bytes kLimit = 28;
  int searched = 0, refuted = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    oracle::Generator generator(seed + 70000);
    const oracle::Features features = oracle::features(static_cast<int>(seed) % 16);
    Problem problem = generator.problem(generator.pick(2, 5), 6, 5, features);
    if (seed % 3 != 0) generator.relate(&problem, 3);
    if (seed % 3 != 1) generator.gather(&problem);
    CHECK(memplan::check(problem).empty());
    const Bytes least = oracle::least_peak(problem, kLimit);
    if (least < kLimit) {
      check_fits(problem, least);
      searched += fit(problem, least).stats.nodes > 0;
    }
    if (least == 0) continue;
    check_infeasible(problem, least - 1);
    refuted += fit(problem, least - 1).stats.nodes > 0;
  }
  CHECK(searched > 10);
  CHECK(refuted > 10);
}

// Tests that a listed conflict counts in a gap, where nothing is held, and is one interval more.
TEST(a_listed_conflict_bars_the_whole_of_both) {
  Problem problem = nook();
  problem.conflicts = oracle::relation(2, {{0, 1}});
  const Bench bench(problem, 100);
  CHECK_EQ(bench.relations.allowed.size(), 2u);
  CHECK_EQ(bench.relations.allowed[0].to, -1);
  CHECK_EQ(bench.relations.allowed[1].from, 8);
  check_infeasible(problem, 8);
  check_fits(problem, 9);

  problem = stack({4, 4});
  problem.start[1] = 5;
  problem.end[1] = 6;
  problem.gaps = {{0, 0, 1, 0, 0}};  // it never holds anything
  problem.conflicts = oracle::relation(2, {{0, 1}});
  check_infeasible(problem, 7);
  check_fits(problem, 8);
}

// Tests that a group is one item with a span for each member that holds something, so that what
// dies early leaves room in it.
TEST(a_group_is_one_item) {
  Problem problem = stack({2, 3, 4, 3});
  problem.end[1] = 2;
  problem.end[0] = problem.end[2] = 4;
  problem.start[3] = 3;
  problem.end[3] = 4;
  problem.group = {5, 5, 5, kNoGroup};
  problem.lead = {0, 2, 5, 0};
  const Bench bench(problem, 9);
  CHECK_EQ(bench.items.count(), 2);
  CHECK_EQ(bench.items.size[0], 9);
  CHECK_EQ(bench.items.parts.size(), 4u);
  check_fits(problem, 9);
  problem.size[3] = 4;
  check_infeasible(problem, 12);
  check_fits(problem, 13);
}

// Tests that alignments, reserved ranges and pins of the members are kept all at once, and that a
// group that cannot keep them is named whole.
TEST(members_of_a_group_share_what_each_may) {
  Problem problem = stack({3, 4});
  problem.group = {0, 0};
  problem.lead = {0, 3};
  problem.alignment = {1, 4};
  problem.reserved = {{4, 5}};
  const Bench bench(problem, 100);
  CHECK_EQ(bench.items.earliest[0], 5);  // at 1, the first would touch the reserved range
  CHECK_EQ(bench.items.latest[0], 93);
  CHECK_EQ(bench.items.legal_above(0, 6), 9);
  CHECK_EQ(bench.items.legal_below(0, 8), 5);
  CHECK_EQ(bench.items.legal_above(0, 94), 94);
  check_fits(problem, 12);
  check_infeasible(problem, 11);

  problem.pin = {kNoOffset, 0};
  const Plan below_zero = fit(problem, 100);
  CHECK_EQ(name(below_zero.status), std::string("infeasible"));
  CHECK(below_zero.conflict == std::vector<BufferIdx>({0, 1}));
  problem.pin = {7, kNoOffset};
  problem.alignment = {1, 1};
  check_fits(problem, 14);
  problem.alignment = {1, 4};  // the second would be at 10
  check_infeasible(problem, 100);
}

// Tests that a group in which the distances make two members overlap is infeasible, unless these
// members never conflict.
TEST(a_group_that_collides_with_itself_never_fits) {
  Problem problem = stack({4, 4});
  problem.group = {0, 0};
  problem.lead = {0, 2};
  check_infeasible(problem, kMaxBytes);
  problem.start[1] = 1;
  problem.end[1] = 2;
  check_fits(problem, 6);
  problem.conflicts = oracle::relation(2, {{0, 1}});
  check_infeasible(problem, kMaxBytes);
}

// Tests that a loose problem is solved by first fit, without a node.
TEST(loose_problems_need_no_search) {
  oracle::Generator generator(3);
  const Problem problem = generator.problem(200, 40, 50, oracle::features(8));
  const Plan plan = fit(problem, 10000);
  CHECK_EQ(name(plan.status), std::string("fits"));
  CHECK_EQ(plan.stats.nodes, 0);
}

// Tests that a cycle "i above j above k above i" is seen, not climbed to a capacity of 2^60.
TEST(a_rising_cycle_is_a_proof) {
  Bench bench(stack({1, 1, 1}), Bytes{1} << 60);
  CHECK(bench.bounds.fixpoint());
  const Propagation::Mark before = bench.bounds.mark();
  CHECK_EQ(bench.relations.all.size(), 3u);
  for (std::int32_t r = 0; r < 3; ++r) {
    // Above means j over i: 0 < 1, 1 < 2, and 2 < 0.
    const Relation& relation = bench.relations.all[r];
    const bool closing = relation.i == 0 && relation.j == 2;
    const std::int32_t side = closing ? relation.begin : relation.end - 1;
    bench.bounds.restrict(r, side, side);
  }
  CHECK(!bench.bounds.fixpoint());
  CHECK(!bench.bounds.gave_up());
  bench.bounds.undo(before);
  for (ItemIdx i = 0; i < 3; ++i) CHECK_EQ(bench.bounds.lower(i), 0);
  CHECK(bench.bounds.fixpoint());
}

// Tests that bounds which only rounding keeps rising end without an answer, and without a proof.
TEST(creeping_bounds_are_given_up) {
  Problem problem = nook();
  problem.alignment = {4, 4};  // no two multiples of 4 differ by 1 to 3
  Bench bench(problem, Bytes{1} << 60);
  CHECK(bench.bounds.fixpoint());
  bench.bounds.restrict(0, 1, 1);
  CHECK(!bench.bounds.fixpoint());
  CHECK(bench.bounds.gave_up());
}

// Tests that buffers with tight bounds are refuted as jobs on one machine: at 0 or 3, three of two
// bytes would share 5 of the 7.
TEST(a_section_is_one_machine) {
  Problem problem = stack({2, 2, 2});
  problem.alignment = {3, 3, 3};
  Bench bench(problem, 7);
  CHECK(!bench.bounds.fixpoint());
  CHECK(!bench.bounds.gave_up());
  check_infeasible(problem, 7);
  check_fits(problem, 8);
}

// Tests that the conflict is the independent part that fails, where it takes a search to know.
TEST(the_conflict_is_the_part_that_fails) {
  Problem problem = stack({1, 4, 4, 4});
  problem.start[0] = 5;
  problem.end[0] = 6;
  problem.reserved = {{5, 7}};  // leaves 5 bytes and 7, each of which has room for one
  const Plan plan = fit(problem, 14);
  CHECK_EQ(name(plan.status), std::string("infeasible"));
  CHECK(plan.stats.nodes > 0);
  CHECK(plan.conflict == std::vector<BufferIdx>({1, 2, 3}));
  check_fits(problem, 15);
}

// Tests that a node budget and a spent stopper end the search with the answer "unknown".
TEST(budgets_are_kept) {
  oracle::Generator generator(11);
  const Problem problem = generator.problem(60, 30, 100, oracle::features(8));
  Bytes load = 0;
  for (const Bytes bytes : loads(sweep(problem))) load = std::max(load, bytes);
  const Plan plan = fit(problem, load, 3);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.nodes, 3);
  Stopper spent(0);
  spent.look();
  const Plan none = pairs_fit(problem, sweep(problem), load, kNoLimit, spent);
  CHECK_EQ(name(none.status), std::string("unknown"));
  CHECK_EQ(none.stats.nodes, 0);
}

// Tests that sizes and alignments near 2^62 do not overflow.
TEST(the_greatest_sizes_are_safe) {
  Problem problem = stack({kMaxBytes / 2, kMaxBytes / 2});
  check_fits(problem, kMaxBytes);
  check_infeasible(problem, kMaxBytes - 1);
  problem.alignment = {kMaxBytes, 1};
  check_fits(problem, kMaxBytes);
  problem.alignment = {kMaxBytes, kMaxBytes};
  check_infeasible(problem, kMaxBytes);
  problem.alignment = {1, kMaxBytes / 2};
  problem.group = {0, 0};
  problem.lead = {0, kMaxBytes / 2};
  check_fits(problem, kMaxBytes);
  problem.lead = {kMaxBytes / 2, 0};
  check_fits(problem, kMaxBytes);
  problem.lead = {0, kMaxBytes};
  check_infeasible(problem, kMaxBytes);
}

TEST_MAIN
