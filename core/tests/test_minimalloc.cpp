// Tests of MiniMalloc's search: the worked example of MiniMalloc, and every switch against brute
// force.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "check.h"
#include "memplan/minimalloc.h"
#include "oracle.h"
#include "published/minimalloc/rules.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr int kSwitchSets = 512;
constexpr int kDominanceAlone = 16;

MiniMallocOptions switches(int bits) {
  MiniMallocOptions on;
  on.canonical = (bits & 1) != 0;
  on.section_inference = (bits & 2) != 0;
  on.monotonic_floor = (bits & 4) != 0;
  on.unallocated_floor = (bits & 8) != 0;
  on.dominance = (bits & 16) != 0;
  on.hatless = (bits & 32) != 0;
  on.dynamic_ordering = (bits & 64) != 0;
  on.static_ordering = (bits & 128) != 0;
  on.dynamic_decomposition = (bits & 256) != 0;
  return on;
}

Plan fit(const Problem& problem, Bytes capacity, const MiniMallocOptions& options = {},
         std::int64_t nodes = kNoLimit) {
  Stopper stopper(std::numeric_limits<double>::infinity());
  return minimalloc(problem, sweep(problem), capacity, options, nodes, stopper);
}

// Figure 2 of MiniMalloc: five buffers of four bytes, b1 to b5 in rows 0 to 4.
Problem example() {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  return problem;
}

// The example with its items, overlaps and a partial solution.
struct Bench {
  explicit Bench(Bytes capacity, int bits = kSwitchSets - 1)
      : problem(example()),
        sections(sweep(problem, Contract::kNo)),
        items(make_items(problem, sections, capacity)),
        listed(overlaps.build(items, stopper) == nullptr),
        solution(items, overlaps, Rules(switches(bits), overlaps)) {}

  bool sections_fit(Bytes last_offset) {
    return solution.sections_fit({0, sections.count - 1}, last_offset);
  }

  Problem problem;
  Sections sections;
  Items items;
  Stopper stopper{std::numeric_limits<double>::infinity()};
  Overlaps overlaps;
  bool listed;
  PartialSolution solution;
};

enum : ItemIdx { b1, b2, b3, b4, b5 };

// Windows and all the rest, or gaps in which a buffer holds nothing.
Problem random_problem(unsigned seed, bool windows) {
  oracle::Generator generator(seed);
  const Bytes count = generator.pick(1, 6);
  Problem problem = generator.problem(count, 6, 3, oracle::features(static_cast<int>(seed % 16)));
  for (Gap& gap : problem.gaps) {
    if (!windows) gap.lower = gap.upper = 0;
  }
  return problem;
}

void check_legal(Problem problem, const Plan& plan, Bytes capacity) {
  problem.capacity = capacity;
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
}

void check_against_brute_force(const Problem& problem, Bytes least, Bytes limit, int bits) {
  if (least < limit) {
    const Plan plan = fit(problem, least, switches(bits));
    CHECK_EQ(name(plan.status), std::string("fits"));
    check_legal(problem, plan, least);
  }
  if (least == 0) return;
  const Plan plan = fit(problem, least - 1, switches(bits));
  CHECK_EQ(name(plan.status), std::string("infeasible"));
  CHECK(plan.offsets.empty());
  CHECK(!plan.conflict.empty());
}

}  // namespace

// Tests that the example has the three cross sections of section 6.2.
TEST(the_example_has_three_cross_sections) {
  const Bench bench(12);
  CHECK(bench.listed);
  CHECK_EQ(bench.sections.count, 3);
  const std::vector<std::vector<ItemIdx>> expected = {{b1, b3, b5}, {b2, b3, b5}, {b4, b5}};
  CHECK(bench.overlaps.in_section == expected);
}

// Tests that eight permutations give the offsets of Figure 2, of which four are offset monotonic,
// three index monotonic, and one is canonical (Table 1).
TEST(table_1_has_eight_isomorphic_solutions_of_which_one_is_canonical) {
  const std::vector<Bytes> figure_2 = {8, 8, 4, 4, 0};
  std::vector<ItemIdx> order = {b1, b2, b3, b4, b5};
  int isomorphic = 0, offset_monotonic = 0, index_monotonic = 0, canonical = 0;
  do {
    Bench bench(12, 0);
    for (const ItemIdx i : order) bench.solution.place(i);
    bool same = true;
    for (ItemIdx i = b1; i <= b5; ++i) same = same && bench.solution.offset(i) == figure_2[i];
    if (!same) continue;
    bool by_offset = true, by_index = true;
    for (int i = 0; i < 5; ++i) {
      for (int j = i + 1; j < 5; ++j) {
        const Bytes low = figure_2[order[i]], high = figure_2[order[j]];
        by_offset = by_offset && low <= high;
        by_index = by_index && (low != high || order[i] < order[j]);
      }
    }
    ++isomorphic;
    offset_monotonic += by_offset;
    index_monotonic += by_index;
    canonical += by_offset && by_index;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK_EQ(isomorphic, 8);
  CHECK_EQ(offset_monotonic, 4);
  CHECK_EQ(index_monotonic, 3);
  CHECK_EQ(canonical, 1);
}

// Tests that the search finds the canonical solution S5 of Table 1, without a step back.
TEST(the_search_finds_figure_2) {
  MiniMallocOptions options;
  options.orders = {"WA"};  // b5, b4, b3, b2, b1
  const Plan plan = fit(example(), 12, options);
  CHECK_EQ(name(plan.status), std::string("fits"));
  check_legal(example(), plan, 12);
  CHECK_EQ(plan.peak, 12);
  CHECK(plan.offsets == std::vector<Bytes>({8, 8, 4, 4, 0}));
  CHECK_EQ(plan.stats.nodes, 5);
  CHECK_EQ(plan.stats.restarts, 1);
}

// Tests that b1(0) -> b5(4) is pruned: 16 bytes would be needed during [3, 9) (Figure 3).
TEST(section_inference_prunes_figure_3) {
  Bench bench(12);
  bench.solution.place(b1);
  CHECK(bench.sections_fit(0));
  bench.solution.place(b5);
  CHECK_EQ(bench.solution.offset(b5), 4);
  CHECK(!bench.sections_fit(4));
  Bench roomy(16);
  roomy.solution.place(b1);
  roomy.solution.place(b5);
  CHECK(roomy.sections_fit(4));
}

// Tests that each floor of section 6.2 prunes what the ones before it let pass.
TEST(floors_strengthen_section_inference) {
  constexpr int kCanonicalInference = 1 | 2, kMonotonicFloor = 4, kUnallocatedFloor = 8;
  // A last offset of 5 is too high for the 8 bytes of b4 and b5.
  Bench plain(12, kCanonicalInference), monotonic(12, kCanonicalInference | kMonotonicFloor);
  for (Bench* bench : {&plain, &monotonic}) bench->solution.place(b3);
  CHECK(plain.sections_fit(5));
  CHECK(!monotonic.sections_fit(5));
  CHECK_EQ(monotonic.solution.highest_start({0, 2}), 4);
  // b5 is at 8 because of b3 and b1, neither of which lives in section [9, 21) with it.
  for (const int floor : {0, kUnallocatedFloor}) {
    Bench lifted(11, kCanonicalInference | floor);
    for (const ItemIdx i : {b3, b1, b4}) lifted.solution.place(i);
    CHECK_EQ(lifted.solution.offset(b5), 8);
    CHECK_EQ(lifted.solution.sections_fit({2, 2}, 4), floor == 0);
  }
}

// Tests that b3(0) -> b1(4) is dominated: b4 would fit below it (Figure 7).
TEST(dominance_prunes_figure_7) {
  Bench bench(12);
  bench.solution.place(b3);
  CHECK_EQ(bench.solution.offset(b1), 4);
  Bytes lowest = 12;
  for (const ItemIdx i : {b1, b2, b4, b5}) lowest = std::min(lowest, bench.solution.height(i));
  CHECK_EQ(lowest, bench.solution.height(b4));
  CHECK(bench.solution.offset(b1) >= lowest);
}

// Tests that undo brings everything back, in whatever depth.
TEST(undo_restores_a_partial_solution) {
  Bench bench(12);
  const PartialSolution::Mark empty = bench.solution.mark();
  bench.solution.place(b5);
  const PartialSolution::Mark one = bench.solution.mark();
  bench.solution.place(b3);
  bench.solution.place(b1);
  CHECK_EQ(bench.solution.offset(b1), 8);
  bench.solution.undo(one);
  CHECK(bench.solution.allocated(b5) && !bench.solution.allocated(b3));
  CHECK_EQ(bench.solution.offset(b1), 4);
  bench.solution.undo(empty);
  for (ItemIdx i = b1; i <= b5; ++i) {
    CHECK(!bench.solution.allocated(i));
    CHECK_EQ(bench.solution.offset(i), 0);
  }
}

// Tests that sums, heights and offsets stay true, through random placements and returns.
TEST(a_partial_solution_keeps_its_invariants) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Problem problem = random_problem(seed, seed % 2 == 0);
    const Sections sections = sweep(problem);
    const Items items = make_items(problem, sections, 40);
    Stopper stopper(std::numeric_limits<double>::infinity());
    Overlaps overlaps;
    CHECK(overlaps.build(items, stopper) == nullptr);
    PartialSolution solution(items, overlaps, Rules({}, overlaps));
    CHECK(solution.check_invariants());
    std::vector<PartialSolution::Mark> marks;
    oracle::Generator generator(seed);
    for (int step = 0; step < 30 && items.count() > 0; ++step) {
      const auto i = static_cast<ItemIdx>(generator.pick(0, items.count() - 1));
      if (!solution.allocated(i) && solution.fits(i)) {
        marks.push_back(solution.mark());
        solution.place(i);
      } else if (!marks.empty()) {
        const auto to =
            static_cast<std::size_t>(generator.pick(0, static_cast<Bytes>(marks.size()) - 1));
        solution.undo(marks[to]);
        marks.resize(to);
      }
      CHECK(solution.check_invariants());
    }
  }
}

// Tests that each technique alone visits fewer nodes than none, on the example one byte short.
TEST(techniques_save_nodes_on_the_example) {
  constexpr int kCanonical = 1;
  const std::int64_t none = fit(example(), 11, switches(0)).stats.nodes;
  const std::int64_t canonical = fit(example(), 11, switches(kCanonical)).stats.nodes;
  CHECK(canonical < none);
  for (const int technique : {16, 256}) {  // dominance, decomposition
    CHECK(fit(example(), 11, switches(kCanonical | technique)).stats.nodes < canonical);
  }
  CHECK(fit(example(), 11, switches(16)).stats.nodes < none);  // dominance without canonical
  const std::int64_t inference = fit(example(), 11, switches(kCanonical | 2)).stats.nodes;
  CHECK_EQ(inference, 0);  // equation 1: no section of 12 bytes fits
}

// Tests that with any set of switches the answer is that of brute force, without windows.
TEST(every_switch_set_agrees_with_brute_force) {
  constexpr Bytes kLimit = 25;
  for (unsigned seed = 0; seed < 320; ++seed) {
    const Problem problem = random_problem(seed, false);
    CHECK(memplan::check(problem).empty());
    const Bytes least = oracle::least_peak(problem, kLimit);
    const int stride = seed < 32 ? 1 : 37;
    for (int bits = static_cast<int>(seed) % stride; bits < kSwitchSets; bits += stride) {
      check_against_brute_force(problem, least, kLimit, bits);
    }
  }
}

// Tests that dominance works without the canonical rule: with it the search visits fewer nodes, and
// on the way to a refutation never more. (The sets of switches above compare its answers.)
TEST(dominance_needs_no_canonical_rule) {
  std::int64_t with = 0, without = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Problem problem = random_problem(seed, false);
    const Bytes least = oracle::least_peak(problem, 25);
    if (least == 0 || least == 25) continue;
    for (const int others : {0, 64, 8 | 256}) {  // none, dynamic ordering, a floor and parts
      const Plan on = fit(problem, least - 1, switches(others | kDominanceAlone));
      const Plan off = fit(problem, least - 1, switches(others));
      CHECK(on.status == Status::kInfeasible && off.status == Status::kInfeasible);
      CHECK(on.stats.nodes <= off.stats.nodes);
      with += on.stats.nodes;
      without += off.stats.nodes;
    }
  }
  CHECK(with < without * 9 / 10);
}

// Tests that the rules which need items to rest on one another are off where windows forbid that.
TEST(windows_that_nest_switch_rules_off) {
  Overlaps overlaps;
  for (const bool positive : {true, false}) {
    overlaps.all_positive = positive;
    const Rules rules(switches(kSwitchSets - 1), overlaps);
    CHECK_EQ(rules.on.canonical, positive);
    CHECK_EQ(rules.on.dominance, positive);
    CHECK_EQ(rules.on.monotonic_floor, positive);
    CHECK(rules.on.section_inference && rules.on.hatless);
    CHECK_EQ(Rules(switches(kDominanceAlone), overlaps).on.dominance, positive);
  }
}

// Tests that with windows every plan is legal, and nothing is called infeasible that is not.
TEST(windows_give_legal_plans_with_every_switch_set) {
  constexpr Bytes kLimit = 25;
  int solved = 0, tight = 0;
  for (unsigned seed = 8; seed < 400; ++seed) {
    if ((seed & 8) == 0) continue;  // no gaps
    const Problem problem = random_problem(seed, true);
    CHECK(memplan::check(problem).empty());
    const Bytes least = oracle::least_peak(problem, kLimit);
    if (least == kLimit) continue;
    for (int bits = static_cast<int>(seed) % 61; bits < kSwitchSets; bits += 61) {
      const Plan plan = fit(problem, least, switches(bits));
      CHECK(plan.status != Status::kInfeasible);
      ++tight;
      if (plan.status != Status::kFits) continue;
      ++solved;
      check_legal(problem, plan, least);
      if (least == 0) continue;
      CHECK(fit(problem, least - 1, switches(bits)).status != Status::kFits);
    }
  }
  CHECK(solved > tight / 2);
}

// Tests that a part without a solution is found behind one that has many, and named.
TEST(the_conflict_is_the_part_that_fails) {
  Problem problem = example();
  for (int i = 0; i < 5; ++i) {  // five twos and a three share time and a capacity of 12
    problem.start.push_back(30);
    problem.end.push_back(31);
    problem.size.push_back(2);
  }
  problem.start.push_back(30);
  problem.end.push_back(31);
  problem.size.push_back(3);
  MiniMallocOptions options;
  options.section_inference = false;  // which would see it at once
  const Plan plan = fit(problem, 12, options);
  CHECK_EQ(name(plan.status), std::string("infeasible"));
  CHECK(plan.conflict == std::vector<BufferIdx>({5, 6, 7, 8, 9, 10}));
  CHECK(fit(problem, 12).conflict == plan.conflict);
}

// Tests that a node budget ends the search with the answer "unknown".
TEST(a_node_budget_ends_the_search) {
  oracle::Generator generator(7);
  const Problem problem = generator.problem(40, 20, 100, {});
  MiniMallocOptions options = switches(0);
  options.orders = {};
  const Plan plan =
      fit(problem, *std::max_element(problem.size.begin(), problem.size.end()), options, 50);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.nodes, 50);
  CHECK(plan.offsets.empty());
}

// Tests that a stopper that is spent before the start ends the set-up too.
TEST(a_spent_stopper_ends_the_set_up) {
  oracle::Generator generator(7);
  const Problem problem = generator.problem(5000, 20, 1, {});
  Stopper stopper(0);
  stopper.look();
  const Plan plan = minimalloc(problem, sweep(problem), 10000, {}, kNoLimit, stopper);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.nodes, 0);
}

// Tests that a deep search needs no deep call stack: a chain of overlaps, placed in one sequence.
TEST(a_long_chain_is_one_deep_path) {
  Problem problem;
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    problem.start.push_back(i);
    problem.end.push_back(i + 2);
    problem.size.push_back(1 + i % 2);
  }
  MiniMallocOptions options;
  options.dynamic_decomposition = false;
  options.orders = {"L"};
  const Plan plan = fit(problem, 3, options);
  CHECK_EQ(name(plan.status), std::string("fits"));
  CHECK_EQ(plan.stats.nodes, kCount);
}

// Tests that sizes, pins and alignments near 2^62 do not overflow.
TEST(the_greatest_sizes_are_safe) {
  Problem problem;
  problem.start = {0, 0};
  problem.end = {1, 1};
  problem.size = {kMaxBytes / 2, kMaxBytes / 2};
  CHECK_EQ(fit(problem, kMaxBytes).peak, kMaxBytes);
  CHECK_EQ(name(fit(problem, kMaxBytes - 1).status), std::string("infeasible"));
  problem.alignment = {kMaxBytes, 1};
  const Plan plan = fit(problem, kMaxBytes);
  CHECK(plan.offsets == std::vector<Bytes>({0, kMaxBytes / 2}));
  problem.alignment = {kMaxBytes, kMaxBytes};
  for (int bits = 0; bits < kSwitchSets; ++bits) {
    CHECK_EQ(name(fit(problem, kMaxBytes, switches(bits)).status), std::string("infeasible"));
  }
}

// Tests that a letter that is no key is refused by name.
TEST(an_unknown_order_is_refused) {
  MiniMallocOptions options;
  options.orders = {"WAX"};
  bool refused = false;
  try {
    fit(example(), 12, options);
  } catch (const std::invalid_argument& error) {
    refused = std::string(error.what()).find("'X'") != std::string::npos;
  }
  CHECK(refused);
}

TEST_MAIN
