// Tests of the one door: every solver, both objectives, all constraints, against brute force.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "check.h"
#include "every_solver.h"
#include "memplan/solve.h"
#include "oracle.h"
#include "solve/incumbent.h"
#include "solve/prober.h"
#include "solve/regimes.h"

using namespace memplan;

namespace {

constexpr const char* kSolvers[] = {"auto", "greedy", "minimalloc", "exact", "prover", "large"};

SolveOptions options(const std::string& solver, Objective objective) {
  SolveOptions result = options_for(solver);
  result.objective = objective;
  result.budget.nodes = 20000;
  return result;
}

// A fit is optimal only where its peak is at the bound.
void check_claim_of_fit(const Plan& plan) {
  if (!plan.has_offsets()) return;
  CHECK(plan.status == (plan.peak == plan.lower_bound ? Status::kOptimal : Status::kFits));
}

}  // namespace

TEST(every_solver_keeps_its_promises_under_every_mix_of_constraints) {
  constexpr Bytes kLimit = 36;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    oracle::Generator random(seed + 100);
    const Bytes count = random.pick(1, 5);
    Problem problem = random.problem(count, 5, 5, oracle::features(seed % oracle::kFeatureSets));
    const Bytes best = oracle::least_peak(problem, kLimit);
    if (best == kLimit) continue;
    const bool windowed = std::any_of(problem.gaps.begin(), problem.gaps.end(),
                                      [](const Gap& gap) { return gap.lower < gap.upper; });
    for (const std::string solver : kSolvers) {
      if (windowed && solver == "prover") continue;
      problem.capacity.reset();
      const Plan least = solve(problem, options(solver, Objective::kMinPeak));
      CHECK(least.has_offsets());
      CHECK(oracle::valid(problem, least.offsets));
      CHECK_EQ(least.peak, oracle::peak(problem, least.offsets));
      CHECK(least.lower_bound <= best);
      CHECK(least.peak >= best);
      if (least.status == Status::kOptimal) CHECK_EQ(least.peak, best);
      const bool complete = solver == "exact" || solver == "auto" || solver == "prover";
      if (complete) CHECK_EQ(name(least.status), std::string("optimal"));

      if (best == 0) continue;
      problem.capacity = best;
      const Plan fits = solve(problem, options(solver, Objective::kFit));
      if (fits.has_offsets()) CHECK(oracle::valid(problem, fits.offsets));
      CHECK(fits.status != Status::kInfeasible);
      CHECK(fits.has_offsets() || !complete);
      check_claim_of_fit(fits);
      problem.capacity = best + 3;
      check_claim_of_fit(solve(problem, options(solver, Objective::kFit)));
      if (best == 1) continue;
      problem.capacity = best - 1;
      const Plan none = solve(problem, options(solver, Objective::kFit));
      CHECK(!none.has_offsets());
      if (complete) CHECK_EQ(name(none.status), std::string("infeasible"));
    }
  }
}

TEST(a_plan_above_the_capacity_is_never_returned) {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  problem.capacity = 11;
  for (const char* solver : kSolvers) {
    for (const Objective objective : {Objective::kFit, Objective::kMinPeak}) {
      const Plan plan = solve(problem, options(solver, objective));
      CHECK_EQ(name(plan.status), std::string("infeasible"));
      CHECK_EQ(plan.conflict.size(), std::size_t{3});
    }
  }
}

// SOMAS, figure 7, as the relation of its appendix E: 1920 in one object, 1664 in many.
TEST(the_toy_of_source_004_is_solved) {
  Problem problem;
  problem.size = {1024, 768, 640, 512, 256};
  for (BufferIdx b = 0; b < 5; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 1);
  }
  problem.conflicts = oracle::relation(5, {{0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 4}});
  for (const std::string solver : {"auto", "exact", "prover"}) {
    const Plan plan = solve(problem, options(solver, Objective::kMinPeak));
    CHECK_EQ(name(plan.status), std::string("optimal"));
    CHECK_EQ(plan.peak, 1664);
    CHECK(oracle::valid(problem, plan.offsets));
  }
}

// A ring of five cannot be expressed by lifetimes, and no three of it conflict: the optimum is
// above every clique. Beside it a pair in a group, so that both kinds of relation are there.
TEST(above_every_clique) {
  Problem problem;
  problem.size = {4, 4, 4, 4, 4, 2, 3};
  for (BufferIdx b = 0; b < 7; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 1);
  }
  problem.conflicts = oracle::relation(7, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {4, 5}});
  for (const bool grouped : {false, true}) {
    if (grouped) {
      problem.group = {kNoGroup, kNoGroup, kNoGroup, kNoGroup, kNoGroup, 1, 1};
      problem.lead = {0, 0, 0, 0, 0, 0, 2};
    }
    const Bytes best = oracle::least_peak(problem, 40);
    CHECK_EQ(best, 12);
    for (const std::string solver : {"auto", "exact", "prover"}) {
      const Plan plan = solve(problem, options(solver, Objective::kMinPeak));
      CHECK_EQ(name(plan.status), std::string("optimal"));
      CHECK_EQ(plan.peak, best);
      problem.capacity = best - 1;
      const Plan none = solve(problem, options(solver, Objective::kFit));
      CHECK_EQ(name(none.status), std::string("infeasible"));
      // The conflict may have more than the ring, but it has all of the ring.
      for (BufferIdx b = 0; b < 5; ++b) {
        CHECK(std::binary_search(none.conflict.begin(), none.conflict.end(), b));
      }
      problem.capacity.reset();
    }
  }
}

// Three that all conflict need 15 bytes, whatever the times are; those three are named.
TEST(listed_conflicts_above_the_capacity_are_named) {
  Problem problem;
  problem.start = {0, 1, 2, 3};
  problem.end = {1, 2, 3, 4};
  problem.size = {5, 9, 5, 5};
  problem.capacity = 14;
  problem.conflicts = oracle::relation(4, {{0, 2}, {0, 3}, {2, 3}});
  problem.group = {kNoGroup, 0, kNoGroup, kNoGroup};  // lifetimes cannot express it
  problem.lead = {0, 0, 0, 0};
  const Plan plan = solve(problem, options("auto", Objective::kFit));
  CHECK_EQ(name(plan.status), std::string("infeasible"));
  CHECK(plan.conflict == std::vector<BufferIdx>({0, 2, 3}));
}

// Every solver answers that nothing fits, and names the buffer.
TEST(a_pin_above_the_capacity_does_not_fit) {
  Problem problem;
  problem.start = {0, 2};
  problem.end = {10, 6};
  problem.size = {64, 32};
  problem.pin = {kNoOffset, 128};
  problem.capacity = 159;
  for (const char* solver : kSolvers) {
    for (const Objective objective : {Objective::kFit, Objective::kMinPeak}) {
      const Plan plan = solve(problem, options(solver, objective));
      CHECK_EQ(name(plan.status), std::string("infeasible"));
      CHECK_EQ(plan.lower_bound, 160);
      CHECK(plan.conflict == std::vector<BufferIdx>{1});
      problem.capacity = 160;
      CHECK_EQ(name(solve(problem, options(solver, objective)).status), std::string("optimal"));
      problem.capacity = 159;
    }
  }
}

// The pin of the last member puts the first one below 0. No capacity is enough, and that takes as
// many questions for large sizes as for small ones.
TEST(a_group_without_a_legal_offset_is_refuted_in_few_nodes) {
  for (const Bytes size : {Bytes{1}, Bytes{1} << 30, (Bytes{1} << 30) + 1, Bytes{1} << 58}) {
    for (const Bytes pin : {Bytes{0}, size - 1}) {
      Problem problem;
      problem.start = {0, 0, 0, 4};
      problem.end = {5, 5, 2, 5};
      problem.size = {size, 0, size, size};
      problem.pin = {kNoOffset, pin, kNoOffset, kNoOffset};
      problem.group = {0, 0, kNoGroup, kNoGroup};
      problem.lead = {0, size, 0, 0};
      for (const char* solver : {"auto", "exact", "prover"}) {
        const Plan plan = solve(problem, options(solver, Objective::kMinPeak));
        CHECK_EQ(name(plan.status), std::string("infeasible"));
        CHECK(plan.stats.nodes < 10'000);
      }
    }
  }
}

TEST(an_empty_problem_has_the_empty_plan) {
  for (const char* solver : kSolvers) {
    const Plan plan = solve(Problem{}, options(solver, Objective::kMinPeak));
    CHECK_EQ(name(plan.status), std::string("optimal"));
    CHECK_EQ(plan.peak, 0);
    Problem limited;
    limited.capacity = 8;
    CHECK_EQ(solve(limited, options(solver, Objective::kFit)).peak, 0);
  }
}

TEST(a_buffer_above_the_capacity_that_never_holds_a_byte_does_not_fit) {
  Problem problem;
  problem.start = {0};
  problem.end = {2};
  problem.size = {9};
  problem.gaps = {{0, 0, 2, 0, 0}};
  problem.capacity = 8;
  for (const char* solver : kSolvers) {
    const Plan plan = solve(problem, options(solver, Objective::kFit));
    CHECK(!plan.has_offsets());
  }
}

TEST(an_interrupt_ends_the_search_with_the_best_plan) {
  oracle::Generator random(5);
  Problem problem;
  for (int b = 0; b < 60; ++b) {
    problem.start.push_back(random.pick(0, 20));
    problem.end.push_back(problem.start.back() + random.pick(8, 20));
    problem.size.push_back(random.pick(2000, 11000));
  }
  SolveOptions stopped;
  stopped.solver = "exact";
  stopped.interrupt = [] { return true; };
  const Plan plan = solve(problem, stopped);
  CHECK(plan.stats.interrupted);
  CHECK(plan.has_offsets());
  CHECK(oracle::valid(problem, plan.offsets));
}

// Tests that there is a plan however small the budget is, under every mix of constraints; and that
// nodes stay within their budget.
TEST(without_a_capacity_there_is_always_a_plan) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    oracle::Generator random(seed + 7);
    Problem problem =
        random.problem(random.pick(1, 9), 9, 9, oracle::features(seed % oracle::kFeatureSets));
    if (seed % 3 == 1) random.relate(&problem, 3);
    if (seed % 5 == 1) problem.pin.clear();  // those of a group may leave no plan at all
    if (seed % 5 == 1) random.gather(&problem);
    const bool windowed = std::any_of(problem.gaps.begin(), problem.gaps.end(),
                                      [](const Gap& gap) { return gap.lower < gap.upper; });
    for (const std::string solver : kSolvers) {
      if (windowed && solver == "prover") continue;
      if (has_relations(problem) && solver == "minimalloc") continue;
      for (const int way : {0, 1, 2}) {
        SolveOptions least = options(solver, Objective::kMinPeak);
        if (way == 0) least.budget.nodes = 1;
        if (way == 1) least.budget.seconds = 0;
        if (way == 2) least.interrupt = [] { return true; };
        const Plan plan = solve(problem, least);
        CHECK(plan.has_offsets());
        CHECK(oracle::valid(problem, plan.offsets));
        CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
        CHECK(plan.lower_bound <= plan.peak);
        // A group is placed at once.
        CHECK(way > 0 || plan.stats.nodes <= (problem.group.empty() ? 2 : problem.count()));
      }
    }
  }
}

// So many that first fit would take minutes: hundreds of thousands of pairs are live at once.
TEST(many_buffers_have_a_plan_at_once) {
  oracle::Generator random(3);
  Problem problem;
  for (BufferIdx b = 0; b < 30000; ++b) {
    const Time first = random.pick(0, 30000);
    const Time second = random.pick(0, 30000);
    problem.start.push_back(std::min(first, second));
    problem.end.push_back(std::max(first, second) + 1);
    problem.size.push_back(random.pick(1, 1 << 20));
  }
  for (const std::string solver : kSolvers) {
    SolveOptions least = options(solver, Objective::kMinPeak);
    least.budget.seconds = 0;
    const Plan plan = solve(problem, least);
    CHECK(plan.has_offsets());
    CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
    CHECK(plan.peak < plan.lower_bound + plan.lower_bound / 20);
  }
}

// An interrupt may come only once, while it is tried to express the conflicts by lifetimes.
TEST(an_interrupt_before_the_search_is_not_lost) {
  Problem problem;
  for (int b = 0; b < 5; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 1);
    problem.size.push_back(4);
  }
  problem.conflicts = oracle::relation(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}});
  SolveOptions stopped;
  int asked = 0;
  stopped.interrupt = [&asked] { return ++asked == 1; };
  CHECK(solve(problem, stopped).stats.interrupted);
  CHECK_EQ(asked, 1);
  // Nor where the answer then needs no search.
  problem.capacity = 1;
  asked = 0;
  CHECK(solve(problem, stopped).stats.interrupted);
  CHECK_EQ(asked, 1);
}

// Tests that plans only get better and bounds only rise, and that they meet in a proof.
TEST(an_incumbent_keeps_the_best_plan_and_the_bound) {
  Problem problem;
  problem.start = {0, 0, 1};
  problem.end = {2, 2, 3};
  problem.size = {3, 4, 5};
  const SolveOptions asked;
  Incumbent incumbent(problem, asked);
  CHECK(incumbent.check_invariants());
  CHECK_EQ(incumbent.lower_bound(), 12);
  const auto plan = [](std::vector<Bytes> offsets, Bytes peak) {
    Plan found;
    found.status = Status::kFeasible;
    found.offsets = std::move(offsets);
    found.peak = peak;
    return found;
  };
  incumbent.offer(plan({0, 5, 10}, 15), "first");
  CHECK(incumbent.check_invariants() && incumbent.peak() == 15 && !incumbent.settled());
  incumbent.refuted(12, {0, 1, 2}, "by hand");
  CHECK(incumbent.check_invariants() && incumbent.lower_bound() == 13);
  incumbent.offer(plan({2, 5, 11}, 16), "second");  // no better
  CHECK(incumbent.check_invariants() && incumbent.peak() == 15);
  incumbent.offer(plan({0, 4, 8}, 13), "third");
  CHECK(incumbent.check_invariants() && incumbent.settled());
  CHECK(incumbent.finish("none").status == Status::kOptimal);
}

// Tests that limits are multiples of what divides all sizes, so that each asks a question of its
// own, on the way up to the best plan and from the bound.
TEST(no_question_is_asked_under_two_names) {
  Problem problem;
  for (int b = 0; b < 8; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 2);
    problem.size.push_back(1024 * (b % 3 + 1));
  }
  const SolveOptions asked;
  Incumbent incumbent(problem, asked);
  Plan high;
  high.status = Status::kFeasible;
  Bytes top = 0;
  for (const Bytes size : problem.size) {
    high.offsets.push_back(top);
    top += size;
  }
  high.peak = top;
  incumbent.offer(high, "high");
  incumbent.find_unit();
  std::vector<Bytes> limits;
  Status answer = Status::kUnknown;
  const auto search = [&](Bytes limit, std::int64_t) {
    limits.push_back(limit);
    Plan plan;
    plan.status = answer;
    return plan;
  };
  Prober prober(incumbent, search, "search");
  const Bytes bound = incumbent.lower_bound();
  prober.probe_halfway(100);
  const auto above = [&](std::vector<Bytes> kibs) {
    for (Bytes& each : kibs) each = bound + 1024 * each;
    return kibs;
  };
  CHECK(limits == above({5, 7, 8, 9}));
  limits.clear();
  answer = Status::kInfeasible;
  prober.probe_from_bound(100, 5);
  CHECK(limits == above({0, 2, 5, 7, 8}));  // the bound rises by one with each
}

TEST(refuses_what_it_does_not_know) {
  const auto refused = [](const Problem& problem, const SolveOptions& asked) {
    try {
      solve(problem, asked);
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  SolveOptions unknown;
  unknown.solver = "best";
  CHECK(refused(Problem{}, unknown).find("'best'") != std::string::npos);
  SolveOptions fit;
  fit.objective = Objective::kFit;
  CHECK(refused(Problem{}, fit).find("capacity") != std::string::npos);
  Problem bad;
  bad.start = {3};
  bad.end = {3};
  bad.size = {1};
  CHECK(!refused(bad, SolveOptions{}).empty());
  Problem related = bad;
  related.end = {4};
  related.group = {0};
  related.lead = {0};
  CHECK(refused(related, options("minimalloc", Objective::kMinPeak)).find("groups") !=
        std::string::npos);
  std::ostringstream proof;
  SolveOptions proved;
  proved.proof = &proof;
  CHECK(refused(related, proved).find("proof") != std::string::npos);
}

// A pin, a window and a group: one buffer or two for each constraint that a solver may lack.
TEST(the_table_says_what_a_solver_refuses) {
  Problem pinned;
  pinned.start = {0, 1};
  pinned.end = {3, 4};
  pinned.size = {2, 3};
  Problem windowed = pinned;
  Problem grouped = pinned;
  pinned.pin = {4, kNoOffset};
  windowed.gaps = {{0, 1, 2, 0, 1}};
  grouped.group = {0, 0};
  grouped.lead = {0, 2};
  const std::pair<Constraint, Problem> all[] = {
      {kPlaces, pinned}, {kWindows, windowed}, {kRelations, grouped}};
  for (const Solver& solver : every_solver()) {
    for (const auto& [constraint, problem] : all) {
      bool refused = false;
      try {
        const Plan plan = solve(problem, options(solver.name, Objective::kMinPeak));
        CHECK(plan.has_offsets());
        CHECK(oracle::valid(problem, plan.offsets));
      } catch (const std::invalid_argument& e) {
        refused = std::string(e.what()).find(solver.name) == 0;
      }
      CHECK_EQ(refused, (solver.lacks & constraint) != 0);
    }
  }
}

TEST(an_option_leads_to_its_field) {
  SolveOptions asked;
  asked.solver = "prover";
  for (const Option& each : options_of(&asked)) {
    CHECK(*std::get<bool*>(each.value));
    if (each.name == std::string("cuts")) *std::get<bool*>(each.value) = false;
  }
  CHECK(!asked.prover.cuts);
  CHECK(asked.prover.learning);

  PublishedOptions published;
  for (const PublishedOption& each : options_of("telamalloc", &published)) {
    if (auto* const* name = std::get_if<std::string*>(&each.value)) **name = "size";
  }
  CHECK_EQ(published.telamalloc.select, "size");
  CHECK(options_of("best", &published).empty());

  asked.solver = "auto";
  int portfolios = 0;
  for (const Option& each : options_of(&asked)) portfolios += each.name == std::string("portfolio");
  CHECK_EQ(portfolios, 2);  // of large and of exact

  asked.solver = "best";
  CHECK(options_of(&asked).empty());
}

// A plan at the bound is a fit too, and the search may find it long before one with more room.
TEST(a_fit_with_more_room_takes_few_nodes_more_than_the_least_peak) {
  constexpr std::int64_t kNodes = 20000;
  for (unsigned seed = 0; seed < check::rounds(4, 40); ++seed) {
    oracle::Generator generator(seed);
    Problem problem = oracle::cut_rectangle(generator, 240, 1000, 4096);
    SolveOptions options;
    options.budget.nodes = kNodes;
    const Plan least = solve(problem, options);
    CHECK_EQ(least.peak, Bytes{4096});
    options.objective = Objective::kFit;
    for (const int percent : {101, 103, 107, 110, 120}) {
      problem.capacity = 4096 * percent / 100;
      const Plan fit = solve(problem, options);
      CHECK(oracle::valid(problem, fit.offsets));
      CHECK(fit.stats.nodes <= 3 * least.stats.nodes + 2000);
    }
    // The turn of the bound does not hide which buffers do not fit.
    problem.capacity = 4095;
    const Plan none = solve(problem, options);
    CHECK(none.status == Status::kInfeasible && !none.conflict.empty());
  }
}

// Tests that a fit with nodes for a few passes takes the way of the least peak, and stops earlier.
TEST(a_fit_of_few_passes_is_found_within_the_nodes_of_the_least_peak) {
  constexpr int kCount = 1200;
  for (unsigned seed = 0; seed < check::rounds(3, 8); ++seed) {
    oracle::Generator generator(seed);
    Problem problem = oracle::cut_rectangle(generator, kCount, 100'000, 100'000);
    SolveOptions options;
    options.budget.nodes = std::int64_t{2} * kCount;
    const Plan least = solve(problem, options);
    options.objective = Objective::kFit;
    for (const int percent : {101, 103, 105, 110, 120}) {
      problem.capacity = least.peak * percent / 100;
      const Plan fit = solve(problem, options);
      CHECK(oracle::valid(problem, fit.offsets));
      CHECK(fit.peak <= *problem.capacity);
      CHECK(fit.stats.nodes <= least.stats.nodes);
      check_claim_of_fit(fit);
    }
  }
}

namespace {

std::string names_of(unsigned bits, std::initializer_list<std::pair<unsigned, const char*>> names,
                     const char* between) {
  std::string found;
  for (const auto& [bit, name] : names) {
    if ((bits & bit) != 0) found += (found.empty() ? "" : between) + std::string(name);
  }
  return found;
}

std::string chain(const char* name, std::int64_t nodes) {
  return name + (nodes == kAllNodes ? " with all nodes; " : " " + std::to_string(nodes) + "; ");
}

std::string row_of(const Regime& regime) {
  const std::string most = regime.most == kAnyCount ? "any" : std::to_string(regime.most);
  std::string traits = names_of(
      regime.traits,
      {{kRelated, "conflicts, groups"}, {kGapped, "gaps"}, {kPlaced, "pins, reserved ranges"}},
      ", ");
  std::string turns =
      names_of(regime.turns, {{kPlanInTime, "plan in time; "}, {kKernels, "kernels; "}}, "") +
      chain("chain", regime.chain) + names_of(regime.turns, {{kDives, "dives; "}}, "");
  if (regime.chain_again > 0) turns += chain("chain again", regime.chain_again);
  turns += names_of(regime.turns, {{kGreedy, "greedy"}, {kSearch, "search"}}, "; ");
  if (regime.turns < kGreedy) turns += "windows or kernels only";
  return "| " + most + " | " + (traits.empty() ? "–" : traits) + " | " + turns + " |\n";
}

}  // namespace

TEST(the_page_of_auto_shows_the_table_of_regimes) {
  std::string regimes = "| buffers, at most | with | turns |\n|---|---|---|\n";
  for (const Regime& each : kRegimes) regimes += row_of(each);
  std::ostringstream page;
  page << std::ifstream(MEMPLAN_PAGES "/algorithms/auto.md").rdbuf();
  const bool shown = page.str().find(regimes) != std::string::npos;
  if (!shown)
    std::fprintf(stderr, "docs/algorithms/auto.md lacks this table:\n%s", regimes.c_str());
  CHECK(shown);
}

TEST(the_first_row_that_suits_a_problem_is_taken) {
  const auto row = [](BufferIdx count, bool related, bool gaps, bool pins) {
    Problem problem;
    problem.start.assign(count, 0);
    problem.end.assign(count, 4);
    problem.size.assign(count, 1);
    if (related) problem.conflicts.other = {1};
    if (gaps) problem.gaps = {{0, 1, 2, 0, 0}};
    if (pins) problem.pin.assign(count, kNoOffset);
    return &regime_of(problem, sweep(problem)) - kRegimes;
  };
  CHECK(row(500, true, true, true) == 0);
  CHECK(row(501, true, false, false) == 1);
  CHECK(row(10001, true, false, false) == 2);
  CHECK(row(500, false, true, true) == 3);
  CHECK(row(500, false, false, true) == 4);
  CHECK(row(500, false, false, false) == 5);
  CHECK(row(501, false, true, false) == 6);
  CHECK(row(2000, false, false, true) == 6);
  CHECK(row(2000, false, false, false) == 7);
  CHECK(row(2001, false, false, false) == 8);
  CHECK(row(10001, false, true, true) == 9);
}

TEST_MAIN
