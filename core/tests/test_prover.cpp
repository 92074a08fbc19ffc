// Tests of the proving engine against brute force and the exact search.
#include <algorithm>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"
#include "exact/pairs.h"
#include "exact/task.h"
#include "memplan/exact.h"
#include "model/items.h"
#include "oracle.h"
#include "prover/clique_cover.h"
#include "prover/engine.h"
#include "prover/halt.h"
#include "prover/model.h"
#include "prover/prover.h"

using namespace memplan;
using exact::Verdict;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// The least peak of a component, in steps of what each plan found leaves to ask; its plan goes to
// `offsets`, by buffer. `limit` + 1 where nothing fits.
Bytes minimise(const exact::Task& task, const ProverOptions& options, Bytes limit,
               std::vector<Bytes>* offsets) {
  const Items& world = *task.world;
  prover::Engine engine(task, options, 0, nullptr);
  Bytes best = limit + 1;
  while (engine.run(best - 1, kNoLimit, kNoLimit) == Verdict::kSat) {
    Bytes peak = 0;
    for (std::size_t id = 0; id < task.source.size(); ++id) {
      const ItemIdx i = task.source[id];
      for (const Part* part = world.first_part(i); part != world.last_part(i); ++part) {
        (*offsets)[part->buffer] = engine.offsets()[id] + part->lead;
      }
      peak = std::max(peak, engine.offsets()[id] + world.size[i]);
    }
    CHECK(peak < best && engine.check_invariants());
    best = peak;
  }
  CHECK(!engine.conflict().empty());
  return best;
}

// The least peak by the prover alone; `capacity` + 1 where no plan is within the capacity.
Bytes least_peak(const Problem& problem, const ProverOptions& options, Bytes capacity) {
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, capacity);
  if (!items.misfits.empty()) return capacity + 1;
  std::vector<Bytes> offsets = items.offsets;
  for (const exact::Task& task : exact::make_tasks(items)) {
    CHECK(prover::Engine::suits(task));
    if (minimise(task, options, capacity, &offsets) > capacity) return capacity + 1;
  }
  Problem within = problem;
  within.capacity = capacity;
  CHECK(oracle::valid(within, offsets));
  return peak_of(problem, offsets);
}

void check_optimum(const Problem& problem, const ProverOptions& options) {
  constexpr Bytes kLimit = 36;
  const Bytes best = oracle::least_peak(problem, kLimit);
  CHECK_EQ(least_peak(problem, options, kLimit - 1), best);
}

#define ROW(type, name, preset, says) +1
constexpr unsigned kSwitches = 0 MEMPLAN_PROVER_OPTIONS(ROW);
#undef ROW

ProverOptions switches(unsigned bits) {
  ProverOptions options;
#define ROW(type, name, preset, says) options.name = (bits & 1) == 0, bits >>= 1;
  MEMPLAN_PROVER_OPTIONS(ROW)
#undef ROW
  return options;
}

// Gaps in which nothing is held: several spans, no windows.
Problem without_windows(Problem problem) {
  for (Gap& gap : problem.gaps) gap.upper = gap.lower;
  return problem;
}

Problem random_problem(oracle::Generator& random, int count, Time horizon, Bytes largest) {
  return random.problem(count, horizon, largest, {});
}

// The source's example of five buffers (000, section 2.2).
Problem five() {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  return problem;
}

// A chain of many buffers with a load that is the same everywhere, where learning counts.
Problem chain(unsigned seed, int count) {
  oracle::Generator random(seed);
  Problem problem;
  for (int b = 0; b < count; ++b) {
    problem.start.push_back(b / 3);
    problem.end.push_back(b / 3 + random.pick(1, 4));
    problem.size.push_back(random.pick(3, 17));
  }
  return problem;
}

// Buffers of which none shares a time with another, and half of all pairs are listed.
Problem tangle(unsigned seed, int count) {
  oracle::Generator random(seed);
  Problem problem;
  for (int b = 0; b < count; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 1);
    problem.size.push_back(random.pick(1, 20));
  }
  random.relate(&problem, 2);
  return problem;
}

struct Proof {
  Verdict verdict;
  std::string text;
};

Proof refute(const Problem& problem, Bytes limit) {
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, 1000);
  std::ostringstream out;
  prover::ProofLog log(out);
  prover::Engine engine(exact::make_tasks(items).front(), {}, 0, &log);
  const Verdict verdict = engine.run(limit, kNoLimit, kNoLimit);
  return {verdict, out.str()};
}

}  // namespace

TEST(finds_the_least_peak_of_the_five_buffers) { CHECK_EQ(least_peak(five(), {}, 100), 12); }

TEST(agrees_with_brute_force_under_every_mix_of_constraints) {
  for (unsigned seed = 0; seed < check::rounds(320, 1500); ++seed) {
    oracle::Generator random(seed);
    const Bytes count = random.pick(1, 5);
    check_optimum(
        without_windows(random.problem(
            count, 5, 5, oracle::features(static_cast<int>(seed) % oracle::kFeatureSets))),
        {});
  }
}

TEST(agrees_with_brute_force_with_conflicts_and_groups) {
  for (unsigned seed = 0; seed < check::rounds(240, 1200); ++seed) {
    oracle::Generator random(seed + 40000);
    const Bytes count = random.pick(2, 5);
    Problem problem =
        without_windows(random.problem(count, 5, 5, oracle::features(static_cast<int>(seed) % 16)));
    if (seed % 3 != 0) random.relate(&problem, 3);
    if (seed % 3 != 1) random.gather(&problem);
    check_optimum(problem, {});
  }
}

TEST(no_switch_changes_an_answer_with_conflicts_and_groups) {
  for (unsigned seed = 0; seed < check::rounds(96, 768); ++seed) {
    oracle::Generator random(seed + 60000);
    const unsigned bits = seed * 2654435761U >> (32 - kSwitches);
    const Bytes count = random.pick(4, 6);
    Problem problem = random.problem(count, 6, 4, {});
    random.relate(&problem, seed % 2 == 0 ? 2 : 5);
    if (seed % 4 > 1) random.gather(&problem);
    check_optimum(problem, switches(bits));
  }
}

TEST(agrees_with_the_search_over_pairs_on_conflicts_and_groups) {
  for (unsigned seed = 0; seed < check::rounds(36, 100); ++seed) {
    oracle::Generator random(seed + 80000);
    Problem problem = random.problem(9 + static_cast<int>(seed % 4), 12, 20, {});
    if (seed % 3 != 0) random.relate(&problem, 4);
    if (seed % 3 != 1) random.gather(&problem);
    const Bytes best = least_peak(problem, {}, 999);
    Stopper stopper(kForever);
    const Sections sections = sweep(problem);
    const Plan at = pairs_fit(problem, sections, best, kNoLimit, stopper);
    CHECK_EQ(name(at.status), std::string("fits"));
    if (best == 0) continue;
    const Plan below = pairs_fit(problem, sections, best - 1, kNoLimit, stopper);
    CHECK_EQ(name(below.status), std::string("infeasible"));
  }
}

// Three buffers, each apart from the next and the last from the first, at three times: the load is
// the largest pair, but all three conflict.
TEST(cliques_of_listed_conflicts_are_seen) {
  Problem problem;
  problem.start = {0, 1, 2};
  problem.end = {1, 2, 3};
  problem.size = {5, 7, 11};
  problem.conflicts = oracle::relation(3, {{0, 1}, {1, 2}, {0, 2}});
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, 100);
  const std::vector<exact::Task> tasks = exact::make_tasks(items);
  CHECK_EQ(tasks.size(), 1u);
  ProverOptions options;
  options.foundation = false;  // which would settle it alone
  prover::Engine engine(tasks.front(), options, 0, nullptr);
  CHECK(engine.run(22, kNoLimit, kNoLimit) == Verdict::kUnsat);
  CHECK_EQ(engine.conflicts(), 1);  // an overload, before any decision
  check_optimum(problem, {});
}

// A group of two with a hole that a buffer of the hole's size fits into, and one that is a byte too
// large does not. In an arena of 2^40 bytes, bounds that creep byte by byte would not end.
TEST(groups_do_not_make_bounds_creep) {
  Problem problem;
  problem.start = {0, 0, 0};
  problem.end = {1, 1, 1};
  problem.size = {4, 4, 3};
  problem.group = {0, 0, kNoGroup};
  problem.lead = {0, 7, 0};
  CHECK_EQ(least_peak(problem, {}, Bytes{1} << 40), 11);
  problem.size[2] = 4;
  CHECK_EQ(least_peak(problem, {}, Bytes{1} << 40), 15);
}

// Where it takes two to fill the hole, only bounds see that they do not fit. That may be slow, but
// a budget ends it, and a later call goes on.
TEST(bounds_that_creep_keep_the_budget) {
  Problem problem;
  problem.start.assign(4, 0);
  problem.end.assign(4, 1);
  problem.size = {4, 4, 3, 3};
  problem.group = {0, 0, kNoGroup, kNoGroup};
  problem.lead = {0, 9, 0, 0};
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, Bytes{1} << 40);
  ProverOptions options;
  options.overload = options.edge_finding = options.set_bounds = options.cuts = false;
  const exact::Task task = exact::make_tasks(items).front();
  const std::vector<Bytes> into_the_hole = {0, 4, 7};
  std::vector<Bytes> by_id;
  for (const ItemIdx i : task.source) by_id.push_back(into_the_hole[i]);
  prover::Engine engine(task, options, 0, nullptr);
  engine.suggest(by_id);
  for (int slice = 0; slice < 3; ++slice) {
    const std::int64_t before = engine.steps();
    CHECK(engine.run(Bytes{1} << 40, kNoLimit, 10000) == Verdict::kBudget);
    CHECK_EQ(engine.conflicts(), 0);
    CHECK(engine.steps() - before < 20000);
  }
  CHECK(engine.run(16, kNoLimit, kNoLimit) == Verdict::kSat);
  CHECK(engine.run(15, kNoLimit, kNoLimit) == Verdict::kUnsat);
  CHECK_EQ(oracle::least_peak(problem, 30), 16);
}

TEST(agrees_with_brute_force_on_more_buffers) {
  for (unsigned seed = 0; seed < check::rounds(40, 150); ++seed) {
    oracle::Generator random(seed + 20000);
    const Bytes count = random.pick(6, 7);
    check_optimum(random.problem(count, 6, 4, {}), {});
  }
}

TEST(no_switch_changes_an_answer) {
  for (unsigned seed = 0; seed < check::rounds(512, 2048); ++seed) {
    oracle::Generator random(seed + 5000);
    const unsigned bits = seed * 2654435761U >> (32 - kSwitches);  // all kinds of mixtures
    const int mix = seed % 3 == 0 ? static_cast<int>(seed / 3 % 16) : 0;
    const Bytes count = random.pick(3, 5);
    check_optimum(without_windows(random.problem(count, 6, 5, oracle::features(mix))),
                  switches(bits));
  }
}

TEST(agrees_with_the_exact_search_where_each_switch_is_off) {
  for (unsigned seed = 0; seed < check::rounds(39, 120); ++seed) {
    oracle::Generator random(seed + 300);
    const Problem problem = random_problem(random, 8 + static_cast<int>(seed % 9), 10, 20);
    const Bytes best = least_peak(problem, switches(1U << (seed % (kSwitches + 1)) >> 1), 999);
    Stopper stopper(kForever);
    const Sections sections = sweep(problem);
    const Plan at = exact_fit(problem, sections, best, {}, kNoLimit, 1, 0, stopper);
    CHECK_EQ(name(at.status), std::string("fits"));
    if (best == 0) continue;
    const Plan below = exact_fit(problem, sections, best - 1, {}, kNoLimit, 1, 0, stopper);
    CHECK_EQ(name(below.status), std::string("infeasible"));
  }
}

TEST(equal_alignments_with_sizes_that_are_not_multiples_stay_exact) {
  for (unsigned seed = 0; seed < check::rounds(100, 300); ++seed) {
    oracle::Generator random(seed + 9000);
    Problem problem = random.problem(4, 4, 7, {});
    problem.alignment.assign(problem.size.size(), 4);
    check_optimum(problem, {});
  }
}

TEST(a_limit_may_be_lowered_in_small_steps_and_answers_stay_the_same) {
  for (unsigned seed = 0; seed < check::rounds(10, 30); ++seed) {
    const Problem problem = chain(seed, 24);
    const Bytes best = least_peak(problem, {}, 500);
    const Items items = make_items(problem, sweep(problem), 500);
    Bytes reached = 0;
    for (const exact::Task& task : exact::make_tasks(items)) {
      prover::Engine engine(task, {}, 7, nullptr);
      Bytes limit = best + 12;
      while (engine.run(limit, kNoLimit, kNoLimit) == Verdict::kSat) --limit;
      CHECK(engine.run(limit, kNoLimit, kNoLimit) == Verdict::kUnsat);
      reached = std::max(reached, limit + 1);
    }
    CHECK_EQ(reached, best);
  }
}

TEST(slices_of_conflicts_and_steps_lead_to_the_same_answer_as_one_run) {
  for (unsigned seed = 0; seed < check::rounds(8, 20); ++seed) {
    const Problem problem = chain(seed, 30);
    const Bytes best = least_peak(problem, {}, 500);
    const Items items = make_items(problem, sweep(problem), 500);
    bool sat = true;
    for (const exact::Task& task : exact::make_tasks(items)) {
      prover::Engine whole(task, {}, 0, nullptr), sliced(task, {}, 0, nullptr);
      const Verdict verdict = whole.run(best - 1, kNoLimit, kNoLimit);
      Verdict answer = Verdict::kBudget;
      for (int slice = 0; answer == Verdict::kBudget; ++slice) {
        CHECK(slice < 1000000);
        answer = slice % 2 == 0 ? sliced.run(best - 1, 1, kNoLimit)
                                : sliced.run(best - 1, kNoLimit, 100);
        CHECK(answer == Verdict::kUnsat || sliced.check_invariants());
      }
      CHECK(answer == verdict);
      CHECK_EQ(sliced.conflicts(), whole.conflicts());
      sat = sat && verdict == Verdict::kSat;
    }
    CHECK(!sat);
  }
}

TEST(a_cancelled_run_makes_no_claim) {
  const Problem problem = chain(1, 60);
  const Items items = make_items(problem, sweep(problem), 1000);
  for (const exact::Task& task : exact::make_tasks(items)) {
    const std::atomic<bool> cancel{true};
    prover::Engine engine(task, {}, 0, nullptr);
    CHECK(engine.run(1000, kNoLimit, kNoLimit, {nullptr, &cancel}) == Verdict::kBudget);
    CHECK_EQ(engine.steps(), 0);
  }
}

// Tests that making the cliques, which may take longer than the search, ends early when another
// thread cancels it, and when the time is up.
TEST(a_cover_is_given_up) {
  const Problem problem = tangle(1, 70);
  const Items items = make_items(problem, sweep(problem), 1000);
  const exact::Task task = exact::make_tasks(items).front();
  const prover::Model model(task, {}, false);
  const auto n = static_cast<std::size_t>(model.items);
  prover::ConflictGraph graph{model.size, std::vector<char>(n * n, 0)};
  for (const auto& [u, v] : model.listed) graph.joined[u * n + v] = graph.joined[v * n + u] = 1;
  CHECK(prover::cover(graph, {}, model.listed)->size() > 64);

  const std::atomic<bool> cancel{true};
  Stopper late(0);
  for (const prover::Halt& halt : {prover::Halt{nullptr, &cancel}, prover::Halt{&late, nullptr}}) {
    CHECK(!prover::cover(graph, {}, model.listed, halt));
  }
}

// Tests that a prover that is stopped at any moment answers "unknown", and finds the answer when it
// is run again with more time.
TEST(a_prover_that_was_stopped_goes_on) {
  const Problem problem = tangle(2, 120);
  const Sections sections = sweep(problem);
  const ProverOptions options;
  const unsigned moments = check::rounds(4, 40);
  for (unsigned moment = 0; moment < moments; ++moment) {
    prover::Slice slice{kNoLimit, kNoLimit};
    prover::Prover asked(problem, sections, 1000, options, 0);
    Stopper stopper(8e-3 / moments * moment);
    const Plan hasty = asked.run(1000, &slice, &stopper, nullptr);
    if (moment == 0) CHECK(hasty.status == Status::kUnknown);
    const Plan plan = asked.run(1000, &slice, nullptr, nullptr);
    CHECK(plan.has_offsets());
    CHECK(oracle::valid(problem, plan.offsets));
    if (hasty.has_offsets()) CHECK(plan.offsets == hasty.offsets);
  }
}

TEST(a_suggested_plan_is_found_without_a_conflict) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Problem problem = chain(seed, 30);
    const Items items = make_items(problem, sweep(problem), 500);
    for (const exact::Task& task : exact::make_tasks(items)) {
      std::vector<Bytes> offsets(problem.size.size(), 0);
      const Bytes best = minimise(task, {}, 500, &offsets);
      std::vector<Bytes> by_id;
      for (const ItemIdx i : task.source) by_id.push_back(offsets[items.buffer[i]]);
      ProverOptions options;
      options.symmetry = false;  // the plan may not be the one that it allows
      prover::Engine engine(task, options, 0, nullptr);
      engine.suggest(by_id);
      CHECK(engine.run(best, kNoLimit, kNoLimit) == Verdict::kSat);
      CHECK_EQ(engine.conflicts(), 0);
    }
  }
}

TEST(sizes_near_the_limit_do_not_overflow) {
  Problem problem;
  problem.start = {0, 0, 2};
  problem.end = {2, 3, 3};
  problem.size = {kMaxBytes / 2 - 1, kMaxBytes / 2 + 1, kMaxBytes / 2 - 7};
  CHECK_EQ(least_peak(problem, {}, kMaxBytes), kMaxBytes);
  problem.pin = {kNoOffset, kMaxBytes / 2 - 1, kNoOffset};
  CHECK_EQ(least_peak(problem, {}, kMaxBytes), kMaxBytes);
}

TEST(a_proof_begins_with_the_rows_and_ends_with_the_empty_clause) {
  const Proof proof = refute(five(), 11);
  CHECK(proof.verdict == Verdict::kUnsat);
  CHECK_EQ(proof.text.substr(0, 5), std::string("rows "));
  CHECK(proof.text.find("\nunit 4\n") != std::string::npos);
  CHECK(proof.text.find("cap 11\n") != std::string::npos);
  const std::string end = "\nrefuted\n";
  CHECK(proof.text.size() > end.size());
  CHECK_EQ(proof.text.substr(proof.text.size() - end.size()), end);
}

TEST(windows_and_huge_cliques_are_declined) {
  Problem problem = five();
  problem.gaps = {{4, 5, 6, 1, 2}};
  const Items windows = make_items(problem, sweep(problem), 100);
  CHECK(!prover::Engine::suits(exact::make_tasks(windows).front()));
  Problem wide;
  wide.start.assign(5000, 0);
  wide.end.assign(5000, 1);
  wide.size.assign(5000, 1);
  const Items many = make_items(wide, sweep(wide), 5000);
  CHECK(!prover::Engine::suits(exact::make_tasks(many).front()));
}

TEST_MAIN
