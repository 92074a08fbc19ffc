// Tests of the chain for large problems: its plans, its promises, and its parts one by one.
#include <cmath>
#include <limits>
#include <string>

#include "check.h"
#include "greedy/passes.h"
#include "large/core.h"
#include "large/ejection.h"
#include "large/part.h"
#include "large/ranking.h"
#include "large/windows.h"
#include "memplan/bounds.h"
#include "memplan/greedy.h"
#include "memplan/large.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr double kForever = std::numeric_limits<double>::infinity();

Plan run(const Problem& problem, const LargeOptions& options = {}, std::int64_t nodes = kNoLimit,
         std::uint64_t seed = 0, const std::function<void(const Plan&)>& improved = nullptr) {
  Stopper stopper(kForever);
  return large(problem, sweep(problem), options, nodes, seed, stopper, improved);
}

// The example of MiniMalloc, figure 2.
Problem five_buffers() {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  return problem;
}

// Many long-lived buffers that meet in the middle, and at any time a short one that needs up to
// `share` of what they leave in one piece.
Problem waves(oracle::Generator& generator, Time horizon, double share) {
  Problem problem;
  std::vector<Bytes> load(static_cast<std::size_t>(horizon), 0);
  const auto add = [&](Time start, Time end, Bytes size) {
    problem.start.push_back(start);
    problem.end.push_back(end);
    problem.size.push_back(size);
    for (Time t = start; t < end; ++t) load[t] += size;
  };
  for (Time i = 0; i < horizon / 4; ++i) {
    const Time start = generator.pick(0, horizon / 2 - 1);
    add(start, std::max(start + 1, horizon - generator.pick(0, horizon / 2 - 1)),
        generator.pick(1, 1000));
  }
  const Bytes peak = *std::max_element(load.begin(), load.end());
  for (Time t = 0; t + 8 < horizon; t += generator.pick(1, 8)) {
    const Time end = t + generator.pick(2, 8);
    const Bytes left = peak - *std::max_element(load.begin() + t, load.begin() + end);
    const auto most = static_cast<Bytes>(share * static_cast<double>(left));
    if (most > 0) add(t, end, generator.pick(1, most));
  }
  return problem;
}

#define ROW(type, name, preset, says) &LargeOptions::name,
constexpr bool LargeOptions::* kSwitches[] = {MEMPLAN_LARGE_OPTIONS(ROW)};
#undef ROW

LargeOptions without(bool LargeOptions::* each) {
  LargeOptions options;
  options.*each = false;
  return options;
}

LargeOptions without_all() {
  LargeOptions options;
  for (bool LargeOptions::* each : kSwitches) options.*each = false;
  return options;
}

// Without a budget, mixes of constraints on thirty buffers take minutes under sanitizers. That the
// chain ends by itself is tested of smaller problems.
const std::int64_t kNodes = check::rounds(4'000, 2'000'000);

}  // namespace

// Tests that known problems are planned at their optimum.
TEST(known_optima) {
  CHECK_EQ(run(five_buffers()).peak, 12);
  oracle::Generator generator(1);
  const int rounds = static_cast<int>(check::rounds(8, 20));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = oracle::cut_rectangle(generator, 12, 40, 1000);
    const Plan plan = run(problem);
    CHECK_EQ(plan.peak, 1000);
    CHECK(oracle::valid(problem, plan.offsets));
  }
}

// Tests that a problem without buffers has a plan.
TEST(empty) {
  const Plan plan = run({});
  CHECK(plan.has_offsets());
  CHECK_EQ(plan.peak, 0);
}

// Tests every mix of constraints on random problems against the definition, and the peak against
// the offsets.
TEST(every_constraint) {
  oracle::Generator generator(2);
  const int rounds = static_cast<int>(check::rounds(2, 6)) * oracle::kFeatureSets;
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = generator.problem(generator.pick(0, 30), 12, 8,
                                              oracle::features(round % oracle::kFeatureSets));
    const Plan plan = run(problem, {}, kNodes);
    CHECK(plan.status == Status::kFeasible);
    CHECK(oracle::valid(problem, plan.offsets));
    CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
  }
}

// Tests that plans of a handful of buffers are rarely above the optimum and never below.
TEST(optimum_of_small_problems) {
  oracle::Generator generator(3);
  int optimal = 0;
  const int rounds = static_cast<int>(check::rounds(64, 200));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = generator.problem(6, 6, 5, oracle::features(round % 16));
    const Plan plan = run(problem);
    const Bytes least = oracle::least_peak(problem, plan.peak + 1);
    CHECK(plan.peak >= least);
    CHECK(plan.lower_bound <= least);
    optimal += plan.peak == least ? 1 : 0;
  }
  CHECK(optimal > rounds * 9 / 10);
}

// Tests that every switch can be off, alone and with all others, and plans stay valid.
TEST(switches) {
  oracle::Generator generator(4);
  const LargeOptions nothing = without_all();
  const int rounds = static_cast<int>(check::rounds(16, 32));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = generator.problem(20, 30, 20, oracle::features(round));
    const Bytes plain = run(problem, nothing).peak;
    CHECK(oracle::valid(problem, run(problem, nothing).offsets));
    for (bool LargeOptions::* each : kSwitches) {
      const Plan plan = run(problem, without(each), kNodes);
      CHECK(oracle::valid(problem, plan.offsets));
      CHECK(plan.peak <= plain);
    }
  }
}

// Tests that the core brings problems to their load that first fit by room does not.
TEST(core_is_worth_it) {
  oracle::Generator generator(5);
  LargeOptions one_pass;
  one_pass.portfolio = one_pass.windows = one_pass.core = one_pass.ejection = false;
  LargeOptions with_core = one_pass;
  with_core.core = true;
  int missed = 0;
  const int rounds = static_cast<int>(check::rounds(4, 10));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = waves(generator, 400, 0.3);
    const Bytes load = lower_bound(problem, sweep(problem)).bytes;
    CHECK_EQ(run(problem, with_core).peak, load);
    missed += run(problem, one_pass).peak > load ? 1 : 0;
  }
  CHECK(missed > rounds / 2);
}

// Tests that a problem of thousands of buffers is planned at its load, validly and again the same.
TEST(many_buffers) {
  oracle::Generator generator(6);
  const Problem problem = waves(generator, 4000, 0.15);
  const Plan plan = run(problem);
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK_EQ(plan.peak, lower_bound(problem, sweep(problem)).bytes);
  CHECK(run(problem).offsets == plan.offsets);
}

// Tests that the plan repeats with a seed for every mix of constraints.
TEST(deterministic) {
  oracle::Generator generator(7);
  for (int round = 0; round < oracle::kFeatureSets; ++round) {
    const Problem problem = generator.problem(35, 20, 50, oracle::features(round));
    const Plan plan = run(problem, {}, kNodes, 5);
    const Plan again = run(problem, {}, kNodes, 5);
    CHECK(again.offsets == plan.offsets);
    CHECK_EQ(again.stats.nodes, plan.stats.nodes);
    CHECK_EQ(again.stats.note, plan.stats.note);
  }
}

// Tests that a budget of nodes is kept, and that more of it never makes a plan worse.
TEST(node_budget) {
  oracle::Generator generator(8);
  const Problem problem = oracle::cut_rectangle(generator, 60, 60, 500);
  CHECK(!run(problem, {}, 59).has_offsets());
  Bytes before = kMaxBytes;
  for (std::int64_t nodes = 60; nodes < 100'000; nodes *= 2) {
    const Plan plan = run(problem, {}, nodes);
    CHECK(plan.stats.nodes <= nodes);
    CHECK(plan.has_offsets());
    CHECK(plan.peak <= before);
    before = plan.peak;
  }
}

// Tests that improved() is called with every plan, each better than the one before, the last one
// being the answer.
TEST(improved_gets_every_plan) {
  oracle::Generator generator(9);
  bool several = false;
  const int rounds = static_cast<int>(check::rounds(8, 30));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = oracle::cut_rectangle(generator, 80, 60, 5000);
    std::vector<Bytes> peaks;
    const Plan plan = run(problem, {}, kNoLimit, 0, [&](const Plan& better) {
      CHECK(oracle::valid(problem, better.offsets));
      CHECK_EQ(better.peak, oracle::peak(problem, better.offsets));
      CHECK(peaks.empty() || better.peak < peaks.back());
      peaks.push_back(better.peak);
    });
    CHECK_EQ(peaks.back(), plan.peak);
    several = several || peaks.size() > 1;
  }
  CHECK(several);
}

// Tests that no plan exceeds the capacity, and that none is claimed where there is none.
TEST(capacity) {
  oracle::Generator generator(10);
  int without_plan = 0;
  const int rounds = static_cast<int>(check::rounds(64, 200));
  for (int round = 0; round < rounds; ++round) {
    Problem problem = generator.problem(10, 6, 6, oracle::features(round % 32));
    const Bytes peak = run(problem).peak;
    if (peak == 0) continue;
    problem.capacity = peak;
    const Plan at = run(problem);
    CHECK_EQ(at.peak, peak);
    CHECK(oracle::valid(problem, at.offsets));
    problem.capacity = peak - 1;
    const Plan below = run(problem);
    CHECK(!below.has_offsets() || oracle::valid(problem, below.offsets));
    if (!below.has_offsets()) CHECK(below.offsets.empty() && below.status == Status::kUnknown);
    without_plan += below.has_offsets() ? 0 : 1;
  }
  CHECK(without_plan > rounds / 2);
}

// Tests that it stops at the target, and that an easy one costs one pass.
TEST(target) {
  oracle::Generator generator(11);
  const Problem problem = oracle::cut_rectangle(generator, 50, 50, 1000);
  LargeOptions easy;
  easy.target = 100'000;
  const Plan plan = run(problem, easy);
  CHECK_EQ(plan.stats.restarts, 1);
  CHECK_EQ(plan.stats.nodes, 50);
}

// Tests that a stopper that has run out leaves no half of a plan, and that an interrupt is in the
// statistics.
TEST(stopper) {
  const Problem problem = five_buffers();
  Stopper out_of_time(0);
  CHECK(!large(problem, sweep(problem), {}, kNoLimit, 0, out_of_time).has_offsets());
  Stopper interrupted(kForever, [] { return true; });
  CHECK(large(problem, sweep(problem), {}, kNoLimit, 0, interrupted).stats.interrupted);
}

// Tests that sizes, pins and alignments at their limits do not overflow.
TEST(extremes) {
  Problem problem;
  problem.start = {std::numeric_limits<Time>::min(), 0, 0};
  problem.end = {0, std::numeric_limits<Time>::max(), 1};
  problem.size = {kMaxBytes, kMaxBytes / 2, kMaxBytes / 4};
  problem.alignment = {kMaxBytes, kMaxBytes / 2, 1};
  problem.pin = {kNoOffset, kMaxBytes / 2, kNoOffset};
  const Plan plan = run(problem);
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK_EQ(plan.peak, kMaxBytes);
}

// Tests the room of every section against its definition.
TEST(rooms) {
  oracle::Generator generator(12);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = generator.problem(12, 20, 9, oracle::features(round % 16));
    const Sections sections = sweep(problem);
    constexpr Bytes kTarget = 1000;
    Bytes usable = kTarget;
    for (const Reserved& r : problem.reserved) usable -= r.upper - r.lower;
    const std::vector<double> room = chain::rooms(problem, sections, kTarget);
    for (SectionIdx s = 0; s < sections.count; ++s) {
      Bytes load = 0;
      Bytes widest = 0;
      for (const Span& span : sections.spans) {
        if (span.first > s || s > span.last) continue;
        load += span.upper - span.lower;
        widest = std::max(widest, span.upper - span.lower);
      }
      CHECK_EQ(room[s], static_cast<double>(usable - load) / static_cast<double>(widest));
    }
  }
}

// Tests that a pass below a target rejects what does not fit there, and places it last.
TEST(passes_reject) {
  Problem problem;
  problem.size = {3, 5, 4};
  problem.start = {0, 0, 0};
  problem.end = {1, 1, 1};
  const Sections sections = sweep(problem);
  Stopper stopper(kForever);
  Passes passes(problem, sections, stopper);
  const Limits limits{kMaxBytes, kNoLimit, kNoLimit};
  const Packing packing = passes.below(8, {0, 2, 1}, {}, Fit::kFirst, limits);
  CHECK(packing.complete);
  CHECK(packing.rejected == std::vector<BufferIdx>{1});
  CHECK(packing.offsets == (std::vector<Bytes>{0, 7, 3}));
  CHECK_EQ(packing.peak, 12);
  const Packing around = passes.below(8, {0, 2}, {kNoOffset, 0, kNoOffset}, Fit::kFirst, limits);
  CHECK(around.offsets == (std::vector<Bytes>{5, 0, 8}));
  std::vector<BufferIdx> order = {0, 2, 1};
  chain::bump({1}, &order);
  CHECK(order == (std::vector<BufferIdx>{1, 0, 2}));
}

// Tests that a target above the limit lets nothing end above the limit.
TEST(passes_keep_their_limit) {
  Problem problem;
  problem.size = {3, 5, 4};
  problem.start = {0, 0, 0};
  problem.end = {1, 1, 1};
  const Sections sections = sweep(problem);
  Stopper stopper(kForever);
  Passes passes(problem, sections, stopper);
  const Packing packing = passes.below(20, {0, 1, 2}, {}, Fit::kFirst, {8, kNoLimit, kNoLimit});
  CHECK(!packing.complete);
  CHECK(packing.rejected == std::vector<BufferIdx>{2});
  CHECK_EQ(packing.peak, 8);
}

// Tests that the ranking puts tight buffers first, then long ones, and that promotion helps.
TEST(ranking) {
  Problem problem = five_buffers();
  problem.size = {1, 2, 8, 8, 1};
  const Sections sections = sweep(problem);
  Stopper stopper(kForever);
  const Profile profile(problem, sections, stopper);
  chain::Ranking ranking(profile);
  const std::vector<BufferIdx> rows = {0, 1, 2, 3, 4};
  const std::vector<BufferIdx> before = ranking.sorted(rows, stopper);
  CHECK_EQ(before.front(), 4);  // no room at all beside the load, and the longest of those
  for (int k = 0; k < 40; ++k) ranking.promote({before.back()});
  CHECK_EQ(ranking.sorted(rows, stopper).front(), before.back());
}

// Tests that the core has what lives in tight sections, and grows by what was rejected.
TEST(core_members) {
  const Problem problem = five_buffers();
  const Sections sections = sweep(problem);  // {0, 2, 4}, {1, 2, 4}, {3, 4}
  CHECK_EQ(sections.count, 3);
  const std::vector<double> room = {0, 5, 9};
  chain::Core core(problem, sections, room);
  CHECK(core.members().empty());
  core.widen(1);
  CHECK(core.members() == (std::vector<BufferIdx>{0, 2, 4}));
  CHECK(core.grow({3}));
  CHECK(core.members() == (std::vector<BufferIdx>{0, 2, 3, 4}));  // itself
  CHECK(core.grow({3}));                                          // and what lives with it
  CHECK(!core.grow({3}));
  core.widen(5);
  CHECK_EQ(core.members().size(), 5U);
}

// Tests that parts keep all constraints of their buffers: what fits as a part fits as a whole.
TEST(parts) {
  oracle::Generator generator(13);
  Stopper stopper(kForever);
  int found = 0;
  const int rounds = static_cast<int>(check::rounds(96, 200));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = generator.problem(10, 10, 9, oracle::features(round % 32));
    std::vector<BufferIdx> rows;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (b % 3 != round % 3 || problem.pin_of(b) != kNoOffset) rows.push_back(b);
    }
    const chain::Part part = chain::take_part(problem, rows);
    CHECK(memplan::check(part.problem).empty());
    const Plan plan = chain::fit_part(part, 60, {kNoLimit, 10'000}, 0, stopper);
    if (!plan.has_offsets()) continue;
    ++found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(oracle::legal(problem, rows[i], plan.offsets[i]));
      for (std::size_t j = 0; j < i; ++j) {
        CHECK(!oracle::conflict(problem, rows[i], plan.offsets[i], rows[j], plan.offsets[j]));
      }
    }
  }
  CHECK(found > rounds / 2);
}

// Tests that a window makes room for a rejected buffer by moving only what lives near it, and
// that partial plans stay valid under every mix of constraints.
TEST(windows) {
  oracle::Generator generator(14);
  Stopper stopper(kForever);
  int inserted = 0;
  const int rounds = static_cast<int>(check::rounds(96, 300));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = generator.problem(14, 16, 20, oracle::features(round % 32));
    const Sections sections = sweep(problem);
    Passes passes(problem, sections, stopper);
    std::vector<BufferIdx> order(problem.size.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<BufferIdx>(i);
    const Bytes target = lower_bound(problem, sections).bytes;
    Packing packing = passes.below(target, order, {}, Fit::kFirst, {kMaxBytes, kNoLimit, kNoLimit});
    for (const BufferIdx b : packing.rejected) packing.offsets[b] = kNoOffset;
    const std::size_t before = packing.rejected.size();
    chain::Windows windows(problem, sections, 1, stopper);
    windows.insert(target, 100'000, &packing.offsets, &packing.rejected);
    inserted += static_cast<int>(before - packing.rejected.size());
    for (BufferIdx a = 0; a < problem.count(); ++a) {
      if (packing.offsets[a] == kNoOffset) continue;
      CHECK(packing.offsets[a] + problem.size[a] <= target);
      CHECK(oracle::legal(problem, a, packing.offsets[a]));
      for (BufferIdx b = 0; b < a; ++b) {
        if (packing.offsets[b] == kNoOffset) continue;
        CHECK(!oracle::conflict(problem, a, packing.offsets[a], b, packing.offsets[b]));
      }
    }
  }
  CHECK(inserted > rounds / 6);
}

// Tests that ejections find the least peak of small problems with conflicts beyond lifetimes and
// with groups nearly always, starting from a greedy plan, and that what they find is a plan.
TEST(ejections_find_least_peaks) {
  oracle::Generator generator(31);
  int asked = 0;
  int found = 0;
  const int rounds = static_cast<int>(check::rounds(192, 600));
  for (int round = 0; round < rounds; ++round) {
    // Not gaps: their buffers count as live all the time here.
    Problem problem = generator.problem(6, 5, 4, oracle::features(round % 8));
    if (round % 3 != 0) generator.relate(&problem, 3);
    if (round % 3 != 1) generator.gather(&problem);
    const Sections sections = sweep(problem);
    Stopper stopper(kForever);
    GreedyOptions one;
    one.orders = {"start"};
    const Plan plan = greedy(problem, sections, one, kNoLimit, stopper);
    if (!plan.has_offsets()) continue;
    const Bytes least = oracle::least_peak(problem, plan.peak);
    if (least == plan.peak) continue;
    ++asked;
    std::vector<Bytes> offsets = plan.offsets;
    std::vector<BufferIdx> rejected;
    const Blocks blocks(problem);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (plan.offsets[b] + problem.size[b] <= least) continue;
      blocks.for_each(b, [&](BufferIdx member, Bytes) {
        offsets[member] = kNoOffset;
        rejected.push_back(member);
      });
    }
    chain::Ejection ejection(problem, sections, 0, stopper);
    const bool done = ejection.insert(least, 2000, &offsets, rejected);
    CHECK(ejection.check_invariants());
    if (!done) continue;
    ++found;
    CHECK(oracle::valid(problem, offsets));
    CHECK_EQ(oracle::peak(problem, offsets), least);
  }
  CHECK(asked > rounds / 12);
  CHECK(found * 100 > asked * 95);
}

// Tests ejections where time is cut into stripes, with every mix of constraints: what they find is
// a plan at the goal, and each buffer is kept in the stripes where it lives.
TEST(ejections_in_stripes) {
  oracle::Generator generator(38);
  Stopper stopper(kForever);
  GreedyOptions one;
  one.orders = {"start"};
  one.best_fit = false;
  int found = 0;
  int asked = 0;
  const int rounds = static_cast<int>(check::rounds(32, 96));
  for (int round = 0; round < rounds; ++round) {
    Problem problem = generator.problem(700, 300, 30, oracle::features(round));
    for (BufferIdx b = 0; b < problem.count(); ++b) {  // short lives
      if (problem.gaps.empty()) problem.end[b] = std::min(problem.end[b], problem.start[b] + 9);
    }
    const Sections sections = sweep(problem);
    const Plan plan = greedy(problem, sections, one, kNoLimit, stopper);
    if (!plan.has_offsets()) continue;
    const Bytes goal = plan.peak - plan.peak / 50;
    std::vector<Bytes> offsets = plan.offsets;
    std::vector<BufferIdx> rejected;
    bool pinned = false;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (offsets[b] + problem.size[b] <= goal) continue;
      pinned = pinned || problem.pin_of(b) != kNoOffset;
      offsets[b] = kNoOffset;
      rejected.push_back(b);
    }
    if (pinned) continue;  // the goal is below the bound
    ++asked;
    chain::Ejection ejection(problem, sections, 0, stopper);
    const bool done = ejection.insert(goal, 5'000, &offsets, rejected);
    CHECK(ejection.check_invariants());
    if (!done) continue;
    ++found;
    CHECK(oracle::valid(problem, offsets));
    CHECK(oracle::peak(problem, offsets) <= goal);
  }
  CHECK(asked > rounds / 4);
  CHECK(found > asked / 5);
}

// Tests each stage for plans above the load alone, after one pass and with every mix of
// constraints: it never makes a plan worse, and often makes it better.
TEST(plans_above_the_load) {
  oracle::Generator generator(39);
  const LargeOptions plain = without_all();
  LargeOptions stages[2] = {plain, plain};
  stages[0].ejection = true;
  stages[1].portfolio = stages[1].best_fit = true;
  int better[2] = {};
  const int rounds = static_cast<int>(check::rounds(16, 32));
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = generator.problem(120, 60, 5000, oracle::features(round));
    const Bytes peak = run(problem, plain).peak;
    for (int stage = 0; stage < 2; ++stage) {
      const Plan plan = run(problem, stages[stage], 60'000);
      CHECK(oracle::valid(problem, plan.offsets));
      CHECK_EQ(oracle::peak(problem, plan.offsets), plan.peak);
      CHECK(plan.stats.nodes < 61'000);
      CHECK(plan.peak <= peak);
      better[stage] += plan.peak < peak ? 1 : 0;
    }
  }
  CHECK(better[0] > rounds / 2);
  CHECK(better[1] > rounds / 2);
}

// Tests that nothing is put above the target: the lowest place of a group may be there once it is
// aligned. The chain took such a plan for a better one, and never ended.
TEST(ejections_stay_below_the_target) {
  Problem problem;
  problem.start = {0, 0};
  problem.end = {1, 1};
  problem.size = {4, 2};
  problem.alignment = {1, 5};
  problem.group = {0, 0};
  problem.lead = {0, 4};
  const Sections sections = sweep(problem);
  Stopper stopper(kForever);
  chain::Ejection ejection(problem, sections, 0, stopper);
  std::vector<Bytes> offsets = {kNoOffset, kNoOffset};
  CHECK(!ejection.insert(6, 1000, &offsets, {0, 1}));
  CHECK(ejection.insert(7, 1000, &offsets, {0, 1}));
  CHECK(offsets == (std::vector<Bytes>{1, 5}));
  CHECK_EQ(run(problem).peak, 7);
}

// Tests that the chain ends by itself, without a budget, where groups, alignments and conflicts
// keep the bound out of reach.
TEST(the_chain_for_relations_ends) {
  oracle::Generator generator(37);
  const int rounds = static_cast<int>(check::rounds(50, 400));
  for (int round = 0; round < rounds; ++round) {
    Problem problem = generator.problem(generator.pick(2, 6), 4, 9, oracle::features(0));
    if (round % 2 == 0) generator.relate(&problem, 3);
    const Bytes unit = generator.pick(2, 7);
    problem.group.assign(problem.size.size(), kNoGroup);
    problem.lead.assign(problem.size.size(), 0);
    problem.alignment.assign(problem.size.size(), 1);
    problem.group[0] = problem.group[1] = 0;
    problem.lead[1] = problem.size[0];
    problem.alignment[1] = unit;
    const Plan plan = run(problem);
    CHECK(plan.has_offsets());
    CHECK(oracle::valid(problem, plan.offsets));
  }
}

// Tests that a hole of just the right size is free: of a plan without any other, each buffer goes
// back to its place, and throws nothing out.
TEST(holes_of_the_right_size_are_free) {
  oracle::Generator generator(39);
  Stopper stopper(kForever);
  int holes = 0;
  for (int round = 0; round < 20; ++round) {
    const Problem problem = oracle::cut_rectangle(generator, 12, 8, 24);
    const Plan plan = run(problem);
    if (plan.peak != 24) continue;
    const Sections sections = sweep(problem);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      std::vector<Bytes> offsets = plan.offsets;
      offsets[b] = kNoOffset;
      chain::Ejection ejection(problem, sections, 0, stopper);
      CHECK(ejection.insert(24, 100, &offsets, {b}));
      CHECK(offsets == plan.offsets);
      CHECK_EQ(ejection.nodes(), 1);
      ++holes;
    }
  }
  CHECK(holes > 100);
}

// Tests that a search by ejection ends with its budget where there is nothing to find.
TEST(ejections_end) {
  Problem problem;
  problem.start = {0, 1, 2};
  problem.end = {1, 2, 3};
  problem.size = {4, 4, 4};
  problem.conflicts = oracle::relation(3, {{0, 1}, {0, 2}, {1, 2}});
  Stopper stopper(kForever);
  const Sections sections = sweep(problem);
  chain::Ejection ejection(problem, sections, 0, stopper);
  std::vector<Bytes> offsets = {0, 4, kNoOffset};
  CHECK(!ejection.insert(11, 100, &offsets, {2}));
  CHECK(ejection.nodes() >= 100 && ejection.nodes() < 110);
  offsets = {0, 4, kNoOffset};
  CHECK(ejection.insert(12, 100, &offsets, {2}));
  CHECK(offsets == (std::vector<Bytes>{0, 4, 8}));
}

// Tests that a group is thrown out in the name of its first member in the table, where the bars of
// two begin at the same offset, and not of the one that some library sorts to the front. Only then
// it is larger than the sixth, and takes the lowest place that both could have.
TEST(ejections_do_not_depend_on_the_sort) {
  Problem problem;
  problem.start = {-5, -5, 5, -5, 5, 0, 0};
  problem.end = {0, 0, 10, 5, 10, 5, 10};
  problem.size = {8, 33, 12, 4, 6, 6, 9};
  problem.pin = {0, 12, kNoOffset, kNoOffset, kNoOffset, kNoOffset, kNoOffset};
  problem.group = {kNoGroup, kNoGroup, 0, 1, 1, 0, kNoGroup};
  problem.lead = {0, 0, 6, 0, 4, 0, 0};
  Stopper stopper(kForever);
  const Sections sections = sweep(problem);
  chain::Ejection ejection(problem, sections, 0, stopper);
  // The pins leave 3 and 4 the offset 8 alone, where they throw out 2 and 5, as well as 6.
  std::vector<Bytes> offsets = {0, 12, 15, kNoOffset, kNoOffset, 9, 0};
  CHECK(ejection.insert(45, 100, &offsets, {3, 4}));
  CHECK(oracle::valid(problem, offsets));
  CHECK(offsets == (std::vector<Bytes>{0, 12, 18, 8, 12, 12, 30}));
}

// Tests that the chain keeps conflicts beyond lifetimes and groups together with all else, within
// budget and capacity, and that it gives the same plan each time.
TEST(related_problems) {
  oracle::Generator generator(32);
  int planned = 0;
  const int rounds = static_cast<int>(check::rounds(64, 200));
  for (int round = 0; round < rounds; ++round) {
    const oracle::Features with = oracle::features(round % oracle::kFeatureSets);
    Problem problem = generator.problem(30, 12, 9, with);
    if (round % 3 != 0) generator.relate(&problem, 5);
    if (round % 3 != 1) generator.gather(&problem);
    const Plan plan = run(problem, {}, 5'000);
    planned += plan.has_offsets() ? 1 : 0;
    if (!plan.has_offsets()) continue;
    CHECK(oracle::valid(problem, plan.offsets));
    CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
    CHECK(plan.stats.nodes < 5'200);
    CHECK(run(problem, {}, 5'000).offsets == plan.offsets);
    problem.capacity = std::max<Bytes>(1, plan.peak - 1);
    const Plan below = run(problem, {}, 5'000);
    CHECK(!below.has_offsets() || oracle::valid(problem, below.offsets));
  }
  CHECK(planned > rounds / 2);  // pins and groups may contradict each other
}

// Tests that every stage is a switch for such problems too, that the chain ends without a budget,
// and that the plans it tells of get better.
TEST(stages_of_related_problems) {
  oracle::Generator generator(33);
  Problem problem = generator.problem(30, 12, 30, {});
  generator.relate(&problem, 4);
  generator.gather(&problem);
  LargeOptions least;
  least.portfolio = least.ejection = false;
  CHECK_EQ(run(problem, least).stats.restarts, 1);
  least.portfolio = true;
  const Bytes passes = run(problem, least).peak;
  CHECK(passes <= run(problem, {}, 30).peak);
  Bytes before = kMaxBytes;
  const Plan plan = run(problem, {}, kNoLimit, 0, [&before](const Plan& better) {
    CHECK(better.peak < before);
    before = better.peak;
  });
  CHECK_EQ(plan.peak, before);
  CHECK(plan.peak < passes);
  CHECK(oracle::valid(problem, plan.offsets));
}

// Tests that a fit stops at the first plan within the capacity, and gives none above it.
TEST(fits) {
  for (const unsigned seed : {5U, 6U}) {
    oracle::Generator generator(seed);
    Problem problem = waves(generator, 3000, 0.9);
    const std::int64_t nodes = 2 * problem.count();
    LargeOptions options;
    const Plan least = run(problem, options, nodes);
    options.fit = true;
    for (const int percent : {100, 103, 110, 120}) {
      problem.capacity = least.peak * percent / 100;
      int improved = 0;
      const Plan plan = run(problem, options, nodes, 0, [&](const Plan& better) {
        CHECK(better.peak <= *problem.capacity);
        ++improved;
      });
      CHECK(oracle::valid(problem, plan.offsets));
      CHECK(plan.peak <= *problem.capacity);
      CHECK(plan.stats.nodes <= least.stats.nodes);
      CHECK_EQ(improved, 1);
    }
    problem.capacity = least.peak - 1;
    const Plan none = run(problem, options, nodes, 0, [](const Plan&) { CHECK(false); });
    CHECK(none.status == Status::kUnknown && none.offsets.empty());
  }
}

TEST_MAIN
