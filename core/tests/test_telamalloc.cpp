// Tests of TelaMalloc's search: what propagation infers and which levels it blames against brute
// force, and every switch against the least peak there is.
#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

#include "check.h"
#include "every_solver.h"
#include "memplan/solve.h"
#include "memplan/telamalloc.h"
#include "oracle.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/candidates.h"
#include "published/telamalloc/culprits.h"
#include "published/telamalloc/phases.h"
#include "published/telamalloc/ranges.h"
#include "published/telamalloc/unplaced.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr Bytes kHighest = 14;  // of what brute force looks at
constexpr int kSwitchSets = 128;
constexpr const char* kSelections[] = {"tela", "size", "area", "lifetime", "lowest"};

TelamallocOptions switches(int bits) {
  TelamallocOptions on;
  on.lowest_position = (bits & 1) != 0;
  on.subproblems = (bits & 2) != 0;
  on.phases = (bits & 4) != 0;
  on.culprits = (bits & 8) != 0;
  on.hoisting = (bits & 16) != 0;
  on.bounded = (bits & 32) != 0;
  on.stuck_rule = (bits & 64) != 0;
  return on;
}

Plan fit(const Problem& problem, Bytes capacity, const TelamallocOptions& options = {},
         std::int64_t nodes = kNoLimit, BacktrackPolicy* policy = nullptr) {
  Stopper stopper(kForever);
  return telamalloc(problem, sweep(problem), capacity, options, nodes, stopper, policy);
}

Problem of(const std::vector<std::vector<Bytes>>& rows) {
  Problem problem;
  for (const std::vector<Bytes>& row : rows) {
    problem.start.push_back(row[0]);
    problem.end.push_back(row[1]);
    problem.size.push_back(row[2]);
  }
  return problem;
}

// All that is supported: gaps in which a buffer holds nothing, no windows.
Problem random_problem(unsigned seed, Bytes most = 6) {
  oracle::Generator generator(seed);
  const Bytes count = generator.pick(1, most);
  Problem problem = generator.problem(count, 6, 3, oracle::features(static_cast<int>(seed % 32)));
  for (Gap& gap : problem.gaps) gap.lower = gap.upper = 0;
  return problem;
}

// Two stretches of time, either of which takes many backtracks within the load.
Problem hard_problem(unsigned seed) {
  oracle::Generator generator(seed);
  Problem problem = generator.problem(24, 12, 40, {});
  const Problem later = generator.problem(24, 12, 40, {});
  for (BufferIdx b = 0; b < later.count(); ++b) {
    problem.start.push_back(later.start[b] + 12);
    problem.end.push_back(later.end[b] + 12);
    problem.size.push_back(later.size[b]);
  }
  return problem;
}

Bytes load(const Problem& problem) {
  const std::vector<Bytes> all = loads(sweep(problem));
  return *std::max_element(all.begin(), all.end());
}

// The engine by itself.
struct Bench {
  Bench(Problem given, Bytes capacity)
      : problem(std::move(given)),
        items(make_items(problem, sweep(problem), capacity)),
        listed(adjacent.build(items, stopper) == nullptr),
        ranges(items, adjacent, stopper),
        culprits(items, ranges) {
    problem.capacity = capacity;
  }

  // Whether the problem has a solution with these placements.
  bool solvable_with(const std::vector<Placement>& placements) const {
    Problem fixed = problem;
    fixed.pin.resize(problem.size.size(), kNoOffset);
    for (const Placement& p : placements) {
      if (problem.pin_of(p.buffer) != kNoOffset && problem.pin_of(p.buffer) != p.offset)
        return false;
      fixed.pin[p.buffer] = p.offset;
    }
    const Bytes limit = *problem.capacity + 1;
    return oracle::least_peak(fixed, limit) < limit;
  }
  std::vector<Placement> placements() const {
    std::vector<Placement> all;
    for (std::int32_t level = 0; level < ranges.levels(); ++level) {
      const ItemIdx i = ranges.item_at(level);
      all.push_back({items.buffer[i], ranges.lower(i)});
    }
    return all;
  }
  std::vector<Bytes> bounds() const {
    std::vector<Bytes> all;
    for (std::int32_t cell = 0; cell < 2 * items.count(); ++cell) all.push_back(ranges.bound(cell));
    return all;
  }

  Problem problem;
  Items items;
  Stopper stopper{kForever};
  Adjacency adjacent;
  bool listed;
  ValidRanges ranges;
  Culprits culprits;
};

// Gives the same answer each time, and records the questions.
class Scripted : public BacktrackPolicy {
 public:
  explicit Scripted(int answer) : answer_(answer) {}

  int choose(const Impasse& now) override {
    if (++asked == 1) {
      first_path = now.path;
      for (const BacktrackTarget& target : now.targets) first.push_back(target.level);
    }
    CHECK(!now.path.empty());
    CHECK(!now.targets.empty());
    CHECK(std::is_sorted(now.part.begin(), now.part.end()));
    std::int32_t above = static_cast<std::int32_t>(now.path.size());
    for (const BacktrackTarget& target : now.targets) {
      CHECK(target.level >= 0 && target.level < above);  // deepest first, each once
      above = target.level;
      CHECK_EQ(target.features[kLevelFeature], static_cast<float>(target.level));
      CHECK(target.features[kSizeFeature] > 0 && target.features[kSizeFeature] <= 1);
      CHECK(target.features[kLifetimeFeature] > 0 && target.features[kLifetimeFeature] <= 1);
      CHECK(target.features[kContentionFeature] >= target.features[kSizeFeature]);
      CHECK(target.features[kTreeReturnsFeature] <= target.features[kBacktracksFeature]);
    }
    for (const std::int32_t level : {4, 8, 16}) {  // each range below the path's own has one
      if (level >= static_cast<std::int32_t>(now.path.size())) break;
      const std::int32_t begin = level == 4 ? 0 : level / 2 + 1;
      CHECK(std::any_of(now.targets.begin(), now.targets.end(), [&](const BacktrackTarget& t) {
        return begin <= t.level && t.level <= level;
      }));
    }
    return std::min(answer_, static_cast<int>(now.targets.size()) - 1);
  }
  void solved(const std::vector<BufferIdx>& part, const std::vector<Placement>& path) override {
    CHECK_EQ(part.size(), path.size());
    found.insert(found.end(), path.begin(), path.end());
  }

  int asked = 0;
  std::vector<std::int32_t> first;  // the targets of the first question
  std::vector<Placement> first_path;
  std::vector<Placement> found;

 private:
  int answer_;
};

}  // namespace

// Tests that with every switch set and selection, plans are legal, that nothing is found below the
// least peak, and that "infeasible" is the answer only where it is true.
TEST(every_switch_set_agrees_with_brute_force) {
  int tight = 0, solved = 0, refuted = 0;
  for (unsigned seed = 0; seed < 320; ++seed) {
    const Problem problem = random_problem(seed);
    CHECK(memplan::check(problem).empty());
    const Bytes least = oracle::least_peak(problem, kHighest);
    for (int bits = static_cast<int>(seed) % 37; bits < kSwitchSets; bits += 37) {
      for (const char* select : kSelections) {
        TelamallocOptions options = switches(bits);
        options.select = select;
        if (least < kHighest) {
          const Plan plan = fit(problem, least, options, 20000);
          CHECK(plan.status != Status::kInfeasible);
          ++tight;
          if (plan.status == Status::kFits) {
            ++solved;
            Problem within = problem;
            within.capacity = least;
            CHECK(oracle::valid(within, plan.offsets));
            CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
          }
        }
        if (least == 0) continue;
        const Plan plan = fit(problem, least - 1, options, 20000);
        CHECK(plan.status == Status::kInfeasible || plan.status == Status::kUnknown);
        CHECK(plan.offsets.empty());
        CHECK_EQ(plan.conflict.empty(), plan.status != Status::kInfeasible);
        if (plan.status == Status::kInfeasible) ++refuted;
      }
    }
  }
  CHECK(solved > tight * 8 / 10);
  CHECK(refuted > 0);
}

// Tests that the buffers named by a refutation do not fit, even alone.
TEST(a_conflict_is_one_by_itself) {
  int seen = 0;
  for (unsigned seed = 0; seed < check::rounds(100, 400); ++seed) {
    const Problem problem = random_problem(seed, 7);
    const Bytes least = oracle::least_peak(problem, kHighest);
    if (least == 0) continue;
    const Plan plan = fit(problem, least - 1, {}, 5000);
    if (plan.status != Status::kInfeasible) continue;
    ++seen;
    Problem alone = problem;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (std::find(plan.conflict.begin(), plan.conflict.end(), b) != plan.conflict.end()) continue;
      alone.size[b] = 0;
      if (!alone.pin.empty()) alone.pin[b] = kNoOffset;
    }
    alone.capacity = least - 1;
    CHECK_EQ(oracle::least_peak(alone, least), least);
  }
  CHECK(seen > 25);
}

// Tests on random paths that a range excludes nothing that is possible, that its lower end is free
// of what is placed, that those named at a dead end are enough for one, and that going back
// restores every bound.
TEST(ranges_and_culprits_are_sound) {
  int dead_ends = 0, partial = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Problem problem = random_problem(seed, 7);
    const Bytes least = oracle::least_peak(problem, kHighest);
    if (least == kHighest || least == 0) continue;
    Bench bench(problem, least + (seed % 2));
    CHECK(bench.listed && bench.adjacent.check_invariants());
    CHECK(bench.ranges.settle());
    const std::vector<Bytes> before = bench.bounds();
    std::mt19937 random(seed);
    bool alive = true;
    while (alive && bench.ranges.levels() < bench.items.count()) {
      ItemIdx i = static_cast<ItemIdx>(random() % bench.items.size.size());
      while (bench.ranges.placed(i)) i = (i + 1) % bench.items.count();
      Bytes offset = bench.ranges.lower(i);
      if (random() % 2 == 0) offset = bench.items.legal_above(i, offset + 1);
      if (offset > bench.ranges.upper(i)) offset = bench.ranges.lower(i);
      alive = bench.ranges.place(i, offset);
      if (!alive) break;
      CHECK(bench.ranges.check_invariants() && bench.ranges.is_settled());
      const std::vector<Placement> placed = bench.placements();
      for (ItemIdx j = 0; j < bench.items.count(); ++j) {
        if (bench.ranges.placed(j)) continue;
        const BufferIdx b = bench.items.buffer[j];
        for (const Placement& p : placed) {
          CHECK(!oracle::conflict(bench.problem, b, bench.ranges.lower(j), p.buffer, p.offset));
        }
        for (Bytes at = 0; at <= *bench.problem.capacity; ++at) {
          if (bench.ranges.lower(j) <= at && at <= bench.ranges.upper(j)) continue;
          if (!oracle::legal(bench.problem, b, at)) continue;
          std::vector<Placement> with = placed;
          with.push_back({b, at});
          CHECK(!bench.solvable_with(with));
        }
      }
    }
    if (!alive) {
      ++dead_ends;
      const std::vector<Placement> placed = bench.placements();
      std::vector<Placement> culprits;
      for (const std::int32_t level : bench.culprits.of_dead_end())
        culprits.push_back(placed[level]);
      CHECK(!bench.solvable_with(culprits));
      if (culprits.size() < placed.size()) ++partial;
    }
    while (bench.ranges.levels() > 0) {
      bench.ranges.take_back(bench.ranges.levels() - 1);
      CHECK(bench.ranges.check_invariants());
    }
    CHECK(bench.bounds() == before);
    CHECK_EQ(bench.ranges.levels(), 0);
  }
  CHECK(dead_ends > 50);
  CHECK(partial > 5);
}

// Tests that a dead end is blamed on the two placements between which a third does not fit, and
// not on those around.
TEST(the_culprits_are_named) {
  // In 8: 0 and 1 leave two gaps of 2 while 3, which needs 3, is live; 2 lies beside it in time.
  Bench bench(of({{0, 4, 2}, {0, 4, 2}, {4, 6, 5}, {0, 2, 3}}), 8);
  CHECK(bench.ranges.settle());
  CHECK(bench.ranges.place(2, 0));
  CHECK(bench.ranges.place(0, 2));
  CHECK_EQ(bench.ranges.lower(3), 4);
  CHECK(!bench.ranges.place(1, 5));
  CHECK(bench.culprits.of_dead_end() == std::vector<std::int32_t>({1, 2}));
  CHECK(bench.culprits.involved().size() == 3);
  bench.ranges.take_back(2);
  CHECK(bench.ranges.place(1, 0));
  CHECK_EQ(bench.ranges.lower(3), 4);
  CHECK_EQ(bench.ranges.upper(3), 5);
  CHECK_EQ(bench.ranges.highest_below(3), 0);
}

// Tests figure 9: two phases of high contention, and at a lower threshold the trough between them.
TEST(phases_are_peaks_before_troughs) {
  // load:  |-- 10 --|-- 3 --|-- 8 --|     time 0 4 8 12, then a part of its own, then one alone
  const Problem problem = of({{0, 4, 7},
                              {0, 12, 3},
                              {5, 7, 0},
                              {8, 12, 5},
                              {4, 8, 0},
                              {5, 6, 1},
                              {20, 21, 1},
                              {20, 22, 1},
                              {30, 31, 9}});
  const Items items = make_items(problem, sweep(problem), 10);  // zero sizes are no items
  Stopper stopper(kForever);
  Adjacency adjacent;
  CHECK(adjacent.build(items, stopper) == nullptr);
  const Phases phases = make_phases(problem, items, adjacent, true, true);
  CHECK_EQ(phases.subproblems.size(), std::size_t{2});
  CHECK_EQ(phases.subproblems[0].size(), 4);
  CHECK(phases.items == std::vector<ItemIdx>({0, 1, 2, 3, 4, 5}));
  CHECK(phases.phase_of == std::vector<std::int32_t>({0, 0, 1, 2, 3, 3, -1}));
  CHECK(phases.contention == std::vector<Bytes>({10, 10, 8, 4, 2, 2, 9}));
  CHECK_EQ(phases.subproblems[0].phase_end, 3);
  CHECK_EQ(make_phases(problem, items, adjacent, false, false).count, 1);
  CHECK_EQ(make_phases(problem, items, adjacent, true, false).count, 2);
}

// Tests that the longest, the largest and the one of largest area come in this order, first at
// home and then elsewhere, that what failed below comes first, and that the list is bounded, by
// more each time it is widened.
TEST(candidates_come_in_order) {
  // 0: longest; 1: largest; 2: largest area; 3 only in the second phase, with 4 alike.
  const Problem problem =
      of({{0, 20, 1}, {0, 1, 9}, {0, 9, 4}, {21, 24, 2}, {21, 24, 2}, {19, 22, 1}});
  const Items items = make_items(problem, sweep(problem), 14);
  Stopper stopper(kForever);
  Adjacency adjacent;
  CHECK(adjacent.build(items, stopper) == nullptr);
  Phases phases = make_phases(problem, items, adjacent, true, true);
  phases.phase_of = {0, 0, 0, 1, 1, 1};
  phases.count = 2;
  const Unplaced unplaced(problem, items, phases);
  const ValidRanges ranges(items, adjacent, stopper);
  Candidates candidates({}, unplaced, ranges);
  candidates.limit_phases(2);
  const auto all = [&candidates](DecisionPoint* point) {
    std::vector<ItemIdx> tried;
    for (ItemIdx i = candidates.next(point); i != kNoItem; i = candidates.next(point)) {
      tried.push_back(i);
    }
    return tried;
  };
  DecisionPoint point, below;
  candidates.open(&point, -1);
  CHECK(all(&point) == std::vector<ItemIdx>({0, 1}));
  CHECK(candidates.widen(4));
  CHECK(candidates.widen(4));
  CHECK(!candidates.widen(4));
  candidates.open(&point, -1);
  CHECK(all(&point) == std::vector<ItemIdx>({0, 1, 2, 3}));
  candidates.open(&below, 1);
  CHECK(all(&below) == std::vector<ItemIdx>({3, 0, 1, 2}));
  candidates.open(&point, -1);
  CHECK_EQ(candidates.next(&point), 0);
  candidates.hoist(below, &point);
  CHECK(all(&point) == std::vector<ItemIdx>({3, 1, 2}));
  candidates.list_all(&point);
  CHECK(candidates.has_more(point));
  CHECK(all(&point) == std::vector<ItemIdx>({4, 5}));
  CHECK(!candidates.has_more(point));
}

// Tests the same as published: three of home, then three of each other phase, and a bound that does
// not count those that have been tried.
TEST(candidates_come_as_published) {
  // Each row is in a phase of its own, so that the three heuristics agree.
  Problem problem;
  for (int k = 0; k < 14; ++k) {
    problem.start.push_back(0);
    problem.end.push_back(100 - k);
    problem.size.push_back(1);
  }
  const Items items = make_items(problem, sweep(problem), 20);
  Stopper stopper(kForever);
  Adjacency adjacent;
  CHECK(adjacent.build(items, stopper) == nullptr);
  Phases phases = make_phases(problem, items, adjacent, true, true);
  for (ItemIdx i = 0; i < 14; ++i) phases.phase_of[i] = i;  // one for each
  phases.count = 14;
  const Unplaced unplaced(problem, items, phases);
  const ValidRanges ranges(items, adjacent, stopper);
  const auto listed = [&](const TelamallocOptions& options, DecisionPoint* point, int tried) {
    Candidates candidates(options, unplaced, ranges);
    candidates.limit_phases(14);
    DecisionPoint below;
    candidates.open(point, 7);
    candidates.open(&below, 3);
    for (int k = 0; k < 14; ++k) candidates.next(&below);
    for (int k = 0; k < tried; ++k) CHECK(candidates.next(point) != kNoItem);
    candidates.hoist(below, point);
    CHECK(!candidates.widen(14) || !options.published);
    return point->candidates.size();
  };
  TelamallocOptions published;
  published.published = true;
  DecisionPoint point;
  CHECK_EQ(listed({}, &point, 2), std::size_t{2});          // two in all, tried or not
  CHECK_EQ(listed(published, &point, 3), std::size_t{13});  // ten that wait
  CHECK(point.candidates == std::vector<ItemIdx>({7, 0, 1, 3, 2, 4, 5, 6, 8, 9, 10, 11, 12}));
  Candidates candidates(published, unplaced, ranges);
  candidates.limit_phases(14);
  candidates.open(&point, 7);
  std::vector<ItemIdx> all;
  for (ItemIdx i = candidates.next(&point); i != kNoItem; i = candidates.next(&point)) {
    all.push_back(i);
  }
  CHECK(all == std::vector<ItemIdx>({7, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13}));

  const Problem five = of({{0, 20, 1}, {0, 1, 9}, {0, 9, 4}, {1, 2, 1}, {19, 22, 1}});
  const Items few = make_items(five, sweep(five), 14);
  Adjacency near;
  CHECK(near.build(few, stopper) == nullptr);
  Phases one = make_phases(five, few, near, true, false);
  const Unplaced open(five, few, one);
  const ValidRanges bounds(few, near, stopper);
  Candidates three(published, open, bounds);
  three.limit_phases(1);
  three.open(&point, -1);
  CHECK_EQ(three.next(&point), 0);  // the longest, the largest and the largest area, and no more
  CHECK_EQ(three.next(&point), 1);
  CHECK_EQ(three.next(&point), 2);
  CHECK_EQ(three.next(&point), kNoItem);
}

// Tests against brute force that the published rules, with any technique off, make legal plans and
// refute only what has none.
TEST(the_published_rules_agree_with_brute_force) {
  int tight = 0, solved = 0, ended = 0;
  for (unsigned seed = 0; seed < 320; ++seed) {
    Problem problem = random_problem(seed);
    const Bytes least = oracle::least_peak(problem, kHighest);
    for (int bits = static_cast<int>(seed) % 37; bits < kSwitchSets; bits += 37) {
      TelamallocOptions options = switches(bits);
      options.published = true;
      if (least < kHighest) {
        problem.capacity = least;
        const Plan plan = fit(problem, least, options, 20000);
        CHECK(plan.status != Status::kInfeasible);
        ++tight;
        if (plan.has_offsets()) {
          ++solved;
          CHECK(oracle::valid(problem, plan.offsets));
        } else if (plan.stats.nodes < 20000) {
          ++ended;  // where the default starts again with more candidates
          CHECK(plan.stats.note.find("no proof") != std::string::npos);
        }
      }
      if (least > 0) CHECK(!fit(problem, least - 1, options, 20000).has_offsets());
    }
  }
  CHECK(tight > 1000);
  CHECK(solved > tight * 7 / 10);
  CHECK(ended > 0);
}

// Tests that as published the reasons of a major backtrack are those of the last failure, which are
// some of those of all failures, and that each technique changes some search.
TEST(the_published_rules_differ_as_described) {
  TelamallocOptions published;
  published.published = true;
  int fewer = 0, differ = 0, changed[7] = {};
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Problem problem = hard_problem(seed);
    const Bytes capacity = load(problem);
    const Plan plan = fit(problem, capacity, published, 2000);
    CHECK(plan.status != Status::kInfeasible);
    CHECK_EQ(fit(problem, capacity, published, 2000).stats.nodes, plan.stats.nodes);
    if (plan.stats.backtracks != fit(problem, capacity, {}, 2000).stats.backtracks) ++differ;
    for (int bit = 0; bit < 7; ++bit) {
      TelamallocOptions without = switches((kSwitchSets - 1) & ~(1 << bit));
      without.published = true;
      const Plan other = fit(problem, capacity, without, 2000);
      if (other.stats.backtracks != plan.stats.backtracks) ++changed[bit];
    }
    // Without hoisting and bounds, both go the same way up to the first major backtrack.
    TelamallocOptions plain;
    plain.bounded = plain.hoisting = false;
    Scripted ours(BacktrackPolicy::kByRule), theirs(BacktrackPolicy::kByRule);
    fit(problem, capacity, plain, 2000, &ours);
    plain.published = true;
    fit(problem, capacity, plain, 2000, &theirs);
    if (ours.first.empty() || theirs.first.empty()) continue;
    CHECK(ours.first_path == theirs.first_path);
    CHECK(theirs.first.back() <= ours.first.front());
    for (const std::int32_t level : theirs.first) {
      const bool fills = level == 4 || level == 8 || level == 16 ||
                         level + 1 == static_cast<std::int32_t>(theirs.first_path.size());
      CHECK(fills || std::count(ours.first.begin(), ours.first.end(), level) == 1);
    }
    if (theirs.first != ours.first) ++fewer;
  }
  CHECK(fewer > 2);
  CHECK(differ > 10);
  for (int bit = 0; bit < 7; ++bit) {
    if ((1 << bit) != 32) CHECK(changed[bit] > 0);  // the bound of ten is seldom reached
  }
}

// Tests that what is unplaced stays in its lists, through items that go out in any order and come
// back in the reverse.
TEST(the_unplaced_keep_their_invariants) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Problem problem = hard_problem(seed);
    const Items items = make_items(problem, sweep(problem), load(problem));
    Stopper stopper(kForever);
    Adjacency adjacent;
    CHECK(adjacent.build(items, stopper) == nullptr);
    CHECK(adjacent.check_invariants());
    const Phases phases = make_phases(problem, items, adjacent, true, true);
    Unplaced unplaced(problem, items, phases);
    std::vector<ItemIdx> in = phases.items;
    std::vector<ItemIdx> out;
    std::mt19937 random(seed);
    for (int step = 0; step < 200; ++step) {
      const bool back = in.empty() || (!out.empty() && random() % 2 == 0);
      if (back) {
        unplaced.restore(out.back());
        in.push_back(out.back());
        out.pop_back();
      } else {
        const auto at = in.begin() + static_cast<std::ptrdiff_t>(random() % in.size());
        unplaced.remove(*at);
        out.push_back(*at);
        in.erase(at);
      }
      CHECK(unplaced.check_invariants());
      CHECK_EQ(unplaced.left(), static_cast<std::int32_t>(in.size()));
    }
  }
}

// Tests that a policy is asked at every major backtrack with targets as described, that the
// search follows its answer, and that it receives the solution.
TEST(a_policy_is_asked_and_obeyed) {
  std::int64_t steps[3] = {};
  int asked = 0;
  for (const int answer : {BacktrackPolicy::kByRule, 0, 1000}) {
    for (unsigned seed = 0; seed < 40; ++seed) {
      const Problem problem = hard_problem(seed);
      Scripted policy(answer);
      const Plan plan = fit(problem, load(problem), {}, 2000, &policy);
      CHECK_EQ(plan.stats.major_backtracks, policy.asked);
      CHECK(plan.stats.major_backtracks <= plan.stats.backtracks);
      steps[answer == 1000 ? 2 : answer + 1] += plan.stats.nodes;
      asked += policy.asked;
      if (answer == BacktrackPolicy::kByRule) {
        CHECK_EQ(fit(problem, load(problem), {}, 2000).stats.nodes, plan.stats.nodes);
      }
      if (plan.status != Status::kFits) continue;
      CHECK(policy.found.size() <= problem.size.size());
      for (const Placement& p : policy.found) CHECK_EQ(plan.offsets[p.buffer], p.offset);
    }
  }
  CHECK(asked > 300);
  CHECK(steps[0] != steps[1] && steps[1] != steps[2]);
}

// Tests that "try all" lists what is unplaced, and goes back one step where none of it fits: then
// the policy is not asked, and all offsets of all orders would be found.
TEST(a_policy_may_have_all_tried) {
  int solved = 0;
  for (unsigned seed = 0; seed < check::rounds(60, 200); ++seed) {
    const Problem problem = random_problem(seed);
    const Bytes least = oracle::least_peak(problem, kHighest);
    if (least == kHighest || least == 0) continue;
    Scripted policy(BacktrackPolicy::kTryAll);
    const Plan plan = fit(problem, least, {}, 50000, &policy);
    CHECK_EQ(plan.stats.major_backtracks, policy.asked);
    if (plan.status == Status::kFits) ++solved;
    CHECK(plan.status != Status::kInfeasible);
  }
  CHECK(solved > 30);
}

// Tests that the same question has the same answer.
TEST(the_search_repeats) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Problem problem = hard_problem(seed);
    const Plan once = fit(problem, load(problem), {}, 3000);
    const Plan again = fit(problem, load(problem), {}, 3000);
    CHECK(once.offsets == again.offsets);
    CHECK_EQ(once.stats.nodes, again.stats.nodes);
    CHECK_EQ(once.stats.backtracks, again.stats.backtracks);
  }
}

// Tests that each technique changes some search, so that every switch has an effect.
TEST(every_switch_does_something) {
  for (int bit = 0; bit < 7; ++bit) {
    int changed = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
      const Problem problem = hard_problem(seed);
      const Bytes capacity = load(problem);
      const std::int64_t with = fit(problem, capacity, {}, 2000).stats.backtracks;
      const Plan without = fit(problem, capacity, switches((kSwitchSets - 1) & ~(1 << bit)), 2000);
      if (without.stats.backtracks != with) ++changed;
    }
    CHECK(changed > 0);
  }
}

// Tests the microbenchmarks of section 7.1: a step for each block, and no backtracks.
TEST(what_needs_no_search_has_none) {
  Problem apart, together;
  Bytes sum = 0;
  for (int i = 0; i < 200; ++i) {
    const Bytes size = 1 + (i * 37) % 200;
    sum += size;
    apart.start.push_back(i);
    apart.end.push_back(i + 1);
    apart.size.push_back(size);
    together.start.push_back(0);
    together.end.push_back(1);
    together.size.push_back(size);
  }
  for (const auto& [problem, capacity] : {std::pair(apart, Bytes{200}), std::pair(together, sum)}) {
    const Plan plan = fit(problem, capacity);
    CHECK_EQ(name(plan.status), std::string("fits"));
    CHECK_EQ(plan.stats.nodes, 200);
    CHECK_EQ(plan.stats.backtracks, 0);
  }
}

// Tests that a node budget ends the search with the answer "unknown".
TEST(a_node_budget_ends_the_search) {
  const Problem problem = hard_problem(3);
  const Plan plan = fit(problem, load(problem), {}, 10);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.nodes, 10);
  CHECK_EQ(plan.stats.note, std::string("the budget ran out"));
}

// Tests that a stopper that is spent before the start ends the set-up too.
TEST(a_spent_stopper_ends_the_set_up) {
  const Problem problem = hard_problem(3);
  Stopper stopper(0);
  stopper.look();
  const Plan plan = telamalloc(problem, sweep(problem), load(problem), {}, kNoLimit, stopper);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.nodes, 0);
}

// Tests that a deep search needs no deep call stack: a chain of overlaps, placed in one path.
TEST(a_long_chain_is_one_deep_path) {
  Problem problem;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    problem.start.push_back(i);
    problem.end.push_back(i + 2);
    problem.size.push_back(1);
  }
  const Plan plan = fit(problem, 3);
  CHECK_EQ(name(plan.status), std::string("fits"));
  CHECK_EQ(plan.stats.nodes, kCount);
}

// Tests that sizes, pins and alignments near 2^62 do not overflow.
TEST(the_greatest_sizes_are_safe) {
  Problem problem = of({{0, 1, kMaxBytes / 2}, {0, 1, kMaxBytes / 2}});
  for (int bits = 0; bits < kSwitchSets; ++bits) {
    CHECK_EQ(fit(problem, kMaxBytes, switches(bits)).peak, kMaxBytes);
    CHECK_EQ(name(fit(problem, kMaxBytes - 1, switches(bits)).status), std::string("infeasible"));
  }
  problem.alignment = {kMaxBytes, 1};
  CHECK(fit(problem, kMaxBytes).offsets == std::vector<Bytes>({0, kMaxBytes / 2}));
  problem.alignment = {kMaxBytes, kMaxBytes};
  CHECK_EQ(name(fit(problem, kMaxBytes).status), std::string("infeasible"));
}

// Tests that the least and greatest times give the plan of small ones: the length of a lifetime may
// be more than a time can be.
TEST(the_greatest_times_are_safe) {
  oracle::Generator random(29);
  for (int round = 0; round < 300; ++round) {
    Problem problem = random.problem(7, 8, 5, {});
    const Bytes capacity = oracle::least_peak(problem, 40);
    const Plan plan = fit(problem, capacity);
    CHECK_EQ(lifetime_of(problem, 0), static_cast<double>(problem.end[0] - problem.start[0]));
    constexpr Time kFar = (Time{1} << 61) - 1;
    for (Time& time : problem.start) time = (time - 4) * kFar;
    for (Time& time : problem.end) time = (time - 4) * kFar;
    const Plan far = fit(problem, capacity);
    CHECK(far.offsets == plan.offsets);
    CHECK_EQ(far.stats.nodes, plan.stats.nodes);
  }
}

// Tests that the least peak is searched for from a plan of greedy, ends without a budget where
// questions stay open, and is called optimal only where the bound equals it.
TEST(the_least_peak_is_looked_for_without_a_budget) {
  int better = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Problem problem = hard_problem(seed);
    SolveOptions options;
    options.solver = "greedy";
    const Plan greedy = solve(problem, options);
    const Plan plan = solve(problem, options_for("telamalloc"));
    CHECK(oracle::valid(problem, plan.offsets));
    CHECK(plan.peak <= greedy.peak);
    CHECK_EQ(plan.status == Status::kOptimal, plan.peak == plan.lower_bound);
    if (plan.peak < greedy.peak) ++better;
  }
  CHECK(better > 0);
}

// Tests that windows, conflicts and unknown selections are refused by name.
TEST(what_is_not_supported_is_refused) {
  const auto refusal = [](const Problem& problem, const SolveOptions& options) {
    try {
      solve(problem, options);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  SolveOptions options = options_for("telamalloc");
  Problem problem = of({{0, 4, 4}, {0, 4, 4}});
  problem.conflicts = oracle::relation(2, {{0, 1}});
  CHECK_EQ(refusal(problem, options),
           std::string("telamalloc supports neither conflicts nor groups: choose exact."));
  problem.conflicts = {};
  problem.gaps = {{0, 1, 2, 0, 2}};
  CHECK_EQ(refusal(problem, options),
           std::string("telamalloc does not support windows: choose exact."));
  problem.gaps.clear();
  problem.capacity = 8;
  PublishedOptions how;
  how.telamalloc.select = "tallest";
  options = options_for("telamalloc", how);
  options.objective = Objective::kFit;
  CHECK(refusal(problem, options).find("'tallest'") != std::string::npos);
}

TEST_MAIN
