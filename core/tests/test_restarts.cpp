// Tests of the search that restarts, beside that of section 5: sections against the definition of
// room, places against brute force, and how many steps the two take.
#include <algorithm>
#include <limits>
#include <vector>

#include "check.h"
#include "memplan/telamalloc.h"
#include "oracle.h"
#include "published/telamalloc/adjacency.h"
#include "published/telamalloc/phases.h"
#include "published/telamalloc/ranges.h"
#include "published/telamalloc/restarts.h"
#include "published/telamalloc/room.h"

using namespace memplan;

namespace {

constexpr std::int64_t kAlone = 3000;  // the steps in which nothing restarts
constexpr Bytes kHighest = 40;         // of what brute force looks at

Stopper never() { return Stopper(std::numeric_limits<double>::infinity()); }

// All that is supported: gaps in which a buffer holds nothing, no windows.
Problem random_problem(unsigned seed, Bytes most, Bytes largest) {
  oracle::Generator generator(seed);
  Problem problem = generator.problem(generator.pick(2, most), 6, largest,
                                      oracle::features(static_cast<int>(seed % 32)));
  for (Gap& gap : problem.gaps) gap.lower = gap.upper = 0;
  return problem;
}

// Many blocks within their load.
Problem hard_problem(unsigned seed) {
  oracle::Generator generator(seed);
  return generator.problem(50, 20, 100, {});
}

Bytes load(const Problem& problem) {
  const std::vector<Bytes> all = loads(sweep(problem));
  return *std::max_element(all.begin(), all.end());
}

Plan fit(const Problem& problem, Bytes capacity, const char* learned, std::int64_t steps) {
  TelamallocOptions options;
  options.learned = learned;
  Stopper stopper = never();
  return telamalloc(problem, sweep(problem), capacity, options, steps, stopper);
}

// The state that both searches work on.
struct Bench {
  Bench(const Problem& given, Bytes capacity)
      : problem(given),
        items(make_items(problem, sweep(problem), capacity)),
        listed(adjacent.build(items, stopper) == nullptr),
        phases(make_phases(problem, items, adjacent, true, true)),
        ranges(items, adjacent, stopper) {}

  const Problem& problem;
  Items items;
  Stopper stopper = never();
  Adjacency adjacent;
  bool listed;
  Phases phases;
  ValidRanges ranges;
};

// The definition (MiniMalloc, equation 3), for one section.
bool has_room(const Bench& bench, SectionIdx section) {
  Bytes bytes = 0;
  Bytes least = std::numeric_limits<Bytes>::max();
  for (ItemIdx i = 0; i < bench.items.count(); ++i) {
    for (const Span* span = bench.items.begin(i); span != bench.items.end(i); ++span) {
      if (section < span->first || section > span->last || bench.ranges.placed(i)) continue;
      bytes += bench.items.size[i];
      least = std::min(least, bench.ranges.lower(i));
    }
  }
  return bytes == 0 || least <= bench.items.highest_floor(bytes);
}

TEST(a_section_has_room_as_it_is_defined) {
  int full = 0;
  for (unsigned round = 0; round < 400; ++round) {
    oracle::Generator chance(round + 1);
    const Problem problem = random_problem(round, 9, 4);
    Bench bench(problem, load(problem) + chance.pick(0, 2));
    if (bench.items.count() == 0 || !bench.items.misfits.empty() || !bench.ranges.settle()) {
      continue;
    }
    Room room(bench.items, bench.ranges);
    std::vector<ItemIdx> path;
    for (int step = 0; step < 30; ++step) {
      const auto i = static_cast<ItemIdx>(chance.pick(0, bench.items.count() - 1));
      if (bench.ranges.placed(i)) {
        const auto level = static_cast<std::size_t>(bench.ranges.level(i));
        for (std::size_t l = level; l < path.size(); ++l) room.take_back(path[l]);
        path.resize(level);
        bench.ranges.take_back(static_cast<std::int32_t>(level));
      } else if (bench.ranges.place(i, bench.ranges.lower(i))) {
        path.push_back(i);
        room.place(i);
        SectionIdx expected = -1;
        for (const Span* span = bench.items.end(i); span-- != bench.items.begin(i);) {
          for (SectionIdx s = span->last; s >= span->first; --s) {
            if (!has_room(bench, s)) expected = s;
          }
        }
        CHECK_EQ(room.overfull(i), expected);
        full += expected >= 0;
      } else {
        bench.ranges.take_back(static_cast<std::int32_t>(path.size()));
      }
      CHECK(room.check_invariants());
    }
  }
  CHECK(full > 20);
}

TEST(it_places_within_every_constraint) {
  int solved = 0;
  for (unsigned round = 0; round < 400; ++round) {
    Problem problem = random_problem(round, 6, 4);
    const Bytes least = oracle::least_peak(problem, kHighest);
    if (least >= kHighest) continue;
    Bench bench(problem, least);
    Restarts search(problem, bench.items, bench.adjacent, bench.phases, bench.stopper);
    std::vector<Bytes> offsets(bench.items.size.size());
    for (ItemIdx i = 0; i < bench.items.count(); ++i) offsets[i] = search.offset(i);
    bool all = true;
    for (const Phases::Subproblem& part : bench.phases.subproblems) {
      search.begin(part);
      all = search.run(search.steps() + 2000) && all;
      CHECK(search.check_invariants());
      for (std::int32_t k = part.begin; k < part.end; ++k) {
        offsets[bench.phases.items[k]] = search.offset(bench.phases.items[k]);
      }
    }
    if (!all) continue;
    problem.capacity = least;
    CHECK(oracle::valid(problem, plan_of(problem, bench.items, offsets, "").offsets));
    ++solved;
  }
  CHECK(solved > 300);
}

TEST(pieces_of_a_run_are_the_run) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const Problem problem = hard_problem(seed);
    Bench bench(problem, load(problem));
    if (!bench.ranges.settle() || bench.phases.subproblems.empty()) continue;
    Restarts whole(problem, bench.items, bench.adjacent, bench.phases, bench.stopper);
    Restarts pieces(problem, bench.items, bench.adjacent, bench.phases, bench.stopper);
    const Phases::Subproblem& part = bench.phases.subproblems.front();
    whole.begin(part);
    pieces.begin(part);
    const bool solved = whole.run(1000);
    bool too = false;
    for (std::int64_t limit = 7; !too && limit < 1007; limit += 7) {
      too = pieces.run(std::min<std::int64_t>(limit, 1000));
    }
    CHECK_EQ(too, solved);
    CHECK_EQ(pieces.steps(), whole.steps());
    CHECK_EQ(pieces.backtracks(), whole.backtracks());
    for (const ItemIdx i : bench.phases.items) CHECK_EQ(pieces.offset(i), whole.offset(i));
  }
}

TEST(both_together_solve_more_and_lose_nothing_that_half_of_the_steps_solve) {
  constexpr std::int64_t kSteps = 12'000;
  int won = 0;
  int same = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    Problem problem = hard_problem(seed);
    const Bytes capacity = load(problem);
    const Plan plain = fit(problem, capacity, "off", kSteps);
    const Plan both = fit(problem, capacity, "on", kSteps);
    CHECK(fit(problem, capacity, "on", kSteps).offsets == both.offsets);
    CHECK(both.stats.nodes <= kSteps + 1);
    if (both.has_offsets()) {
      problem.capacity = capacity;
      CHECK(oracle::valid(problem, both.offsets));
      won += !plain.has_offsets();
    }
    if (!plain.has_offsets()) continue;
    if (plain.stats.nodes < kAlone) {
      CHECK_EQ(both.stats.nodes, plain.stats.nodes);
      CHECK(both.offsets == plain.offsets);
      ++same;
    } else if (plain.stats.nodes <= kSteps / 2) {
      CHECK(both.has_offsets());
    }
  }
  CHECK(won > 1);
  CHECK(same > 5);
}

TEST(parts_that_either_solves_make_one_plan) {
  // A hard stretch of time, an easy one, and the hard one again.
  int solved = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    Problem problem = hard_problem(seed);
    const Bytes capacity = load(problem);
    const BufferIdx count = problem.count();
    for (const Time later : {100, 200}) {
      for (BufferIdx b = 0; b < (later == 100 ? 2 : count); ++b) {
        problem.start.push_back(problem.start[b] + later);
        problem.end.push_back(problem.end[b] + later);
        problem.size.push_back(problem.size[b]);
      }
    }
    const Plan plan = fit(problem, capacity, "on", 12'000);
    if (!plan.has_offsets()) continue;
    problem.capacity = capacity;
    CHECK(oracle::valid(problem, plan.offsets));
    ++solved;
  }
  CHECK(solved > 5);
}

}  // namespace

TEST_MAIN
