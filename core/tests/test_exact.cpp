// Tests of the exact search against brute force: every answer, every switch, every thread count.
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "exact/arena.h"
#include "exact/id_set.h"
#include "exact/nogoods.h"
#include "exact/portfolio.h"
#include "exact/task.h"
#include "memplan/exact.h"
#include "model/items.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

Plan fit(const Problem& problem, Bytes capacity, const ExactOptions& options = {},
         std::int64_t nodes = kNoLimit, int threads = 1) {
  Stopper stopper(kForever);
  return exact_fit(problem, sweep(problem), capacity, options, nodes, threads, 0, stopper);
}

Bytes load_of(const Problem& problem) {
  const std::vector<Bytes> all = loads(sweep(problem));
  return *std::max_element(all.begin(), all.end());
}

// The same load at all times, of which a third ends at a time and begins in other sizes.
Problem flat() {
  oracle::Generator random(0);
  Problem problem;
  std::vector<BufferIdx> live;
  const auto begin = [&](Time time, Bytes size) {
    live.push_back(problem.count());
    problem.start.push_back(time);
    problem.end.push_back(6);
    problem.size.push_back(size);
  };
  for (int b = 0; b < 24; ++b) begin(0, random.pick(40, 110));
  for (Time time = 1; time < 6; ++time) {
    std::vector<Bytes> sizes;
    for (int ended = 0; ended < 8; ++ended) {
      const auto at = live.begin() + random.pick(0, static_cast<Bytes>(live.size()) - 1);
      problem.end[*at] = time;
      sizes.push_back(problem.size[*at]);
      live.erase(at);
    }
    for (int pair = 0; pair < 8; pair += 2) {
      const Bytes moved = random.pick(1, 20);
      begin(time, sizes[pair] + moved);
      begin(time, sizes[pair + 1] - moved);
    }
  }
  return problem;
}

Problem subset(const Problem& problem, const std::vector<BufferIdx>& rows) {
  Problem result;
  result.reserved = problem.reserved;
  for (const BufferIdx b : rows) {
    result.start.push_back(problem.start[b]);
    result.end.push_back(problem.end[b]);
    result.size.push_back(problem.size[b]);
    result.alignment.push_back(problem.alignment_of(b));
    result.pin.push_back(problem.pin_of(b));
    for (Gap gap : problem.gaps) {
      if (gap.buffer != b) continue;
      gap.buffer = static_cast<BufferIdx>(result.size.size() - 1);
      result.gaps.push_back(gap);
    }
  }
  return result;
}

// At the optimum there is a plan, one byte below it there is none, and the conflict is a reason.
void check_optimum(const Problem& problem, const ExactOptions& options) {
  constexpr Bytes kLimit = 36;
  const Bytes best = oracle::least_peak(problem, kLimit);
  if (best == kLimit) return;
  Problem at_best = problem;
  at_best.capacity = best;
  const Plan plan = fit(problem, best, options);
  CHECK_EQ(name(plan.status), std::string("fits"));
  CHECK(oracle::valid(at_best, plan.offsets));
  CHECK_EQ(plan.peak, best);
  if (best == 0) return;
  const Plan none = fit(problem, best - 1, options);
  CHECK_EQ(name(none.status), std::string("infeasible"));
  CHECK(!none.conflict.empty());
  CHECK(oracle::least_peak(subset(problem, none.conflict), kLimit) >= best);
}

ExactOptions switches(int bits) {
  ExactOptions options;
#define ROW(type, name, preset, says) options.name = (bits & 1) == 0, bits >>= 1;
  MEMPLAN_EXACT_OPTIONS(ROW)
#undef ROW
  return options;
}

// MiniMalloc, section 2.2.
Problem five() {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  return problem;
}

}  // namespace

TEST(finds_the_plan_of_the_five_buffers_and_no_smaller_one) {
  const Plan plan = fit(five(), 12);
  CHECK_EQ(name(plan.status), std::string("fits"));
  CHECK_EQ(plan.peak, 12);
  const Plan none = fit(five(), 11);
  CHECK_EQ(name(none.status), std::string("infeasible"));
}

TEST(agrees_with_brute_force_under_every_mix_of_constraints) {
  for (unsigned seed = 0; seed < check::rounds(640, 3000); ++seed) {
    oracle::Generator random(seed);
    const Bytes count = random.pick(1, 5);
    check_optimum(random.problem(count, 5, 5, oracle::features(seed % oracle::kFeatureSets)), {});
  }
}

TEST(no_switch_changes_an_answer) {
  for (unsigned seed = 0; seed < check::rounds(1024, 4096); ++seed) {
    oracle::Generator random(seed + 5000);
    const int mix = seed % 3 == 0 ? static_cast<int>(seed / 3 % 8) : 0;
    const Bytes count = random.pick(3, 5);
    check_optimum(random.problem(count, 6, 5, oracle::features(mix)),
                  switches(static_cast<int>(5 * seed % 4096)));
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

TEST(threads_and_row_order_do_not_change_the_plan) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    oracle::Generator random(seed + 77);
    const Problem problem = random.problem(40, 30, 50, {});
    const Bytes load = load_of(problem);
    const Plan one = fit(problem, load, {}, 20000, 1);
    const Plan four = fit(problem, load, {}, 20000, 4);
    CHECK_EQ(name(one.status), std::string(name(four.status)));
    CHECK(one.offsets == four.offsets);
    CHECK_EQ(one.stats.nodes, four.stats.nodes);

    Problem turned;
    for (BufferIdx b = problem.count() - 1; b >= 0; --b) {
      turned.start.push_back(problem.start[b]);
      turned.end.push_back(problem.end[b]);
      turned.size.push_back(problem.size[b]);
    }
    CHECK_EQ(fit(turned, load, {}, 20000).stats.nodes, one.stats.nodes);
  }
}

TEST(samples_follow_the_dives_and_are_the_same_for_any_number_of_threads) {
  const Problem problem = flat();
  const Plan one = fit(problem, load_of(problem), {}, 100000);
  CHECK_EQ(name(one.status), std::string("unknown"));
  const Plan four = fit(problem, load_of(problem), {}, 100000, 4);
  CHECK_EQ(one.stats.nodes, four.stats.nodes);
  CHECK_EQ(one.stats.restarts, four.stats.restarts);
  ExactOptions one_rule;
  one_rule.portfolio = false;
  const Plan without = fit(problem, load_of(problem), one_rule, 100000);
  CHECK(one.stats.restarts > without.stats.restarts);  // samples are shorter than later dives
}

// A search without an answer. It runs out of memory in a run that is asked for, or goes on until it
// is stopped.
class Failing : public exact::AnySearch {
 public:
  exact::Verdict run(const exact::Strategy&, std::int64_t budget, Stopper* stopper,
                     const std::atomic<bool>* cancel) override {
    if (budget > 0 && runs_left-- == 0) throw std::bad_alloc();
    while (goes_on && budget > 0 && !*cancel && (stopper == nullptr || !stopper->look())) {
      std::this_thread::yield();
    }
    nodes_ += budget;
    return exact::Verdict::kBudget;
  }
  std::int64_t nodes() const override { return nodes_; }
  const std::vector<Bytes>& offsets() const override { return offsets_; }
  bool in_conflict(int) const override { return false; }

  static std::unique_ptr<AnySearch> make(const exact::Task&, const ExactOptions&) {
    return std::make_unique<Failing>();
  }
  static std::atomic<int> runs_left;
  static bool goes_on;

 private:
  std::int64_t nodes_ = 0;
  std::vector<Bytes> offsets_;
};
std::atomic<int> Failing::runs_left{0};
bool Failing::goes_on = false;

// Tests that an exception in the thread of a worker does not end the process, whichever run it is
// in; nor does one of the interrupt, which the calling thread asks while the others run.
TEST(what_a_worker_throws_reaches_the_caller) {
  const Problem problem = flat();
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, load_of(problem));
  const std::vector<exact::Task> tasks = exact::make_tasks(items);
  const auto run = [&](int threads, int runs, const Stopper::Interrupt& interrupt) {
    Failing::runs_left = runs;
    exact::Portfolio portfolio(tasks.front(), {}, 0, {nullptr, Failing::make});
    Stopper stopper(kForever, interrupt);
    try {
      portfolio.run(100'000, threads, stopper);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string no_memory = std::bad_alloc().what();
  for (const int threads : {1, 2, 5}) {
    Failing::goes_on = false;
    CHECK_EQ(run(threads, -1, {}), std::string());
    for (const int runs : {0, 1, 2, 3, 4, 7}) CHECK_EQ(run(threads, runs, {}), no_memory);
    Failing::goes_on = true;
    int asked = 0;
    const auto raise = [&asked]() -> bool {
      return ++asked > 2 ? throw std::runtime_error("from outside") : false;
    };
    CHECK_EQ(run(threads, -1, raise), std::string("from outside"));
  }
}

TEST(a_node_budget_ends_the_search_without_a_claim) {
  const Problem problem = flat();
  const Plan plan = fit(problem, load_of(problem), {}, 1);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK(plan.stats.nodes <= 2);
}

TEST(sizes_near_the_limit_do_not_overflow) {
  Problem problem;
  problem.start = {0, 0, 2};
  problem.end = {2, 3, 3};
  problem.size = {kMaxBytes / 2 - 1, kMaxBytes / 2 + 1, kMaxBytes / 2 - 7};
  CHECK_EQ(name(fit(problem, kMaxBytes).status), std::string("fits"));
  CHECK_EQ(name(fit(problem, kMaxBytes - 1).status), std::string("infeasible"));
}

TEST(a_deep_dive_needs_no_deep_stack) {
  Problem problem;
  for (int b = 0; b < 3000; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 2);
    problem.size.push_back(1 + b % 3);
  }
  CHECK_EQ(name(fit(problem, 5).status), std::string("fits"));
}

// Tests that what is taken from an arena does not overlap, that a mark gives it back, and that sets
// in it hold what they were given.
TEST(an_arena_keeps_its_invariants) {
  oracle::Generator random(12);
  exact::Arena arena;
  std::vector<exact::Arena::Mark> marks;
  std::vector<exact::IdSet> sets;
  for (int step = 0; step < 2000; ++step) {
    if (random.pick(0, 2) != 0 || marks.empty()) {
      marks.push_back(arena.mark());
      sets.emplace_back(arena, 2);
      sets.back().add(step % 128);
      if (random.pick(0, 50) == 0) arena.take<std::uint64_t>(40000);
    } else {
      const auto to = static_cast<std::size_t>(
          random.pick(std::max<Bytes>(0, static_cast<Bytes>(marks.size()) - 4),
                      static_cast<Bytes>(marks.size()) - 1));
      arena.release(marks[to]);
      marks.resize(to);
      sets.resize(to);
    }
    CHECK(arena.check_invariants());
    for (std::size_t k = 1; k < sets.size(); ++k) CHECK(sets[k].meets(sets[k]));
  }
}

// Tests that tightness decides whether a nogood refutes, and that the table stays in order.
TEST(nogoods_keep_their_invariants) {
  oracle::Generator random(13);
  exact::Nogoods<Bytes> nogoods(64);
  std::vector<std::uint64_t> bits(1);
  int refuted = 0;
  for (int step = 0; step < 500; ++step) {
    std::vector<exact::Item<Bytes>> items;
    for (std::int32_t id = 0; id < 6; ++id) items.push_back({random.pick(0, 3), 1, 0, 0, id});
    exact::IdSet conflict(bits.data(), 1);
    conflict.clear();
    const auto key = static_cast<std::uint64_t>(random.pick(0, 3));
    if (nogoods.refutes(key, items.data(), 6, 9, conflict)) {
      ++refuted;
      CHECK(bits[0] != 0 && bits[0] < 64);
      for (exact::Item<Bytes>& item : items) item.floor -= 4;  // looser than any that was learned
      CHECK(!nogoods.refutes(key, items.data(), 6, 9, conflict));
    } else {
      conflict.add(static_cast<int>(random.pick(0, 2)));
      conflict.add(static_cast<int>(random.pick(3, 5)));
      nogoods.learn(key, items.data(), 6, 9, conflict);
      CHECK(nogoods.refutes(key, items.data(), 6, 9, conflict));
    }
    CHECK(nogoods.check_invariants());
  }
  CHECK(refuted > 200);
}

// Tests that items and tasks keep their invariants, under every mix of constraints.
TEST(items_and_tasks_keep_their_invariants) {
  oracle::Generator random(14);
  for (int round = 0; round < 500; ++round) {
    Problem problem = random.problem(9, 8, 9, oracle::features(round % oracle::kFeatureSets));
    if (round % 3 == 0) random.relate(&problem, 4);
    if (round % 5 == 0) random.gather(&problem);
    const Items items = make_items(problem, sweep(problem), 40);
    CHECK(check_invariants(items));
    if (!items.misfits.empty()) continue;
    ItemIdx count = 0;
    for (const exact::Task& task : exact::make_tasks(items)) {
      CHECK(exact::check_invariants(task) && exact::check_invariants(exact::reversed(task)));
      count += static_cast<ItemIdx>(task.source.size());
    }
    CHECK_EQ(count, items.count());
  }
}

TEST(reversing_a_task_twice_gives_it_back) {
  oracle::Generator random(11);
  const Problem problem = random.problem(12, 8, 9, {});
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, 100);
  for (const exact::Task& task : exact::make_tasks(items)) {
    const exact::Task again = exact::reversed(exact::reversed(task));
    for (std::size_t i = 0; i < task.items.size(); ++i) {
      CHECK_EQ(again.items[i].first, task.items[i].first);
      CHECK_EQ(again.items[i].last, task.items[i].last);
      CHECK_EQ(again.items[i].size, task.items[i].size);
    }
  }
}

TEST_MAIN
