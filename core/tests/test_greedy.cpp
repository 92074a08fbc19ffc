// Tests of the greedy passes: valid plans for every order and constraint, and their places.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "check.h"
#include "greedy/beam.h"
#include "greedy/coalescing.h"
#include "greedy/passes.h"
#include "greedy/short_lists.h"
#include "greedy/skyline.h"
#include "memplan/greedy.h"
#include "model/neighbours.h"
#include "model/occupancy.h"
#include "oracle.h"
#include "util/interval_lists.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

Plan run(const Problem& problem, const GreedyOptions& options, std::int64_t nodes = kNoLimit,
         Contract contract = Contract::kYes) {
  Stopper stopper(std::numeric_limits<double>::infinity());
  return greedy(problem, sweep(problem, contract), options, nodes, stopper);
}

GreedyOptions only(const std::string& order, bool best_fit = false) {
  GreedyOptions options;
  options.orders = {order};
  options.first_fit = !best_fit;
  options.best_fit = best_fit;
  return options;
}

// The example of MiniMalloc, figure 2.
Problem five_buffers() {
  Problem problem;
  problem.start = {0, 3, 0, 9, 0};
  problem.end = {3, 9, 9, 21, 21};
  problem.size = {4, 4, 4, 4, 4};
  return problem;
}

Problem all_alive(const std::vector<Bytes>& sizes) {
  Problem problem;
  problem.size = sizes;
  problem.start.assign(sizes.size(), 0);
  problem.end.assign(sizes.size(), 1);
  return problem;
}

// What a squeaky wheel made of many problems: each plan is valid, and at the least peak.
struct Wheel {
  int found = 0;
  int moved = 0;
  int missed = 0;

  void see(const Problem& problem, const Plan& plan, Bytes least) {
    missed += !plan.has_offsets();
    if (!plan.has_offsets()) return;
    CHECK(oracle::valid(problem, plan.offsets));
    CHECK_EQ(plan.peak, least);
    ++found;
    moved += plan.stats.note.find("moved up") != std::string::npos;
  }
};

}  // namespace

// Tests that lists keep sorted, disjoint intervals and tell what was new.
TEST(interval_lists) {
  IntervalLists lists(2);
  CHECK(lists.add(0, {10, 20}));
  CHECK(lists.add(0, {30, 40}));
  CHECK(lists.add(0, {0, 5}));
  CHECK(!lists.add(0, {12, 20}));
  CHECK(lists.add(0, {20, 30}));  // touches both neighbours
  CHECK_EQ(lists.end(0) - lists.begin(0), 2);
  CHECK_EQ(lists.begin(0)[1].lower, 10);
  CHECK_EQ(lists.begin(0)[1].upper, 40);
  CHECK(lists.empty(1));
  lists.clear();
  CHECK(lists.empty(0));
}

// Tests random lists against a row of bits, through many moves between blocks.
TEST(interval_lists_match_bits) {
  oracle::Generator generator(4);
  IntervalLists lists(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<bool>> bits(3, std::vector<bool>(130, false));
    lists.clear();
    for (int step = 0; step < 60; ++step) {
      const auto list = static_cast<std::size_t>(generator.pick(0, 2));
      const Bytes lower = generator.pick(0, 120);
      const Bytes upper = lower + generator.pick(1, 3);
      bool fresh = false;
      for (Bytes i = lower; i < upper; ++i) {
        fresh = fresh || !bits[list][i];
        bits[list][i] = true;
      }
      CHECK_EQ(lists.add(list, {lower, upper}), fresh);
      CHECK(lists.check_invariants());
    }
    for (std::size_t list = 0; list < 3; ++list) {
      std::vector<bool> seen(130, false);
      Bytes before = -1;
      for (const Interval* i = lists.begin(list); i != lists.end(list); ++i) {
        CHECK(i->lower > before);  // touching ones would be one
        before = i->upper;
        for (Bytes b = i->lower; b < i->upper; ++b) seen[b] = true;
      }
      CHECK(seen == bits[list]);
    }
  }
}

// Tests first and best fit on random occupations against trying every offset.
TEST(fits_match_every_offset) {
  oracle::Generator generator(5);
  for (int round = 0; round < 1000; ++round) {
    oracle::Features with = oracle::features(round % 16);
    with.pins = false;
    const Problem problem = generator.problem(7, 6, 5, with);
    const Sections sections = sweep(problem);
    Occupancy occupancy(problem, sections);
    std::vector<Bytes> offsets;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      // Every legal offset in turn; a gap is a row of offsets that are free of conflict.
      constexpr Bytes kTop = 100;
      const Bytes from = generator.pick(0, 3);
      Bytes first = kNoOffset;
      Bytes best = kNoOffset;
      Bytes best_room = kTop;
      Bytes run_start = kNoOffset;
      for (Bytes offset = 0; offset < kTop; ++offset) {
        Problem unaligned = problem;
        unaligned.alignment.clear();
        bool free = oracle::legal(unaligned, b, offset);
        for (BufferIdx a = 0; free && a < b; ++a) {
          free = !oracle::conflict(problem, a, offsets[a], b, offset);
        }
        const bool aligned = offset % problem.alignment_of(b) == 0;
        if (free && aligned && offset >= from && first == kNoOffset) first = offset;
        if (free && aligned && run_start == kNoOffset) run_start = offset;
        if (!free && run_start != kNoOffset) {
          if (offset - run_start < best_room) {
            best = run_start;
            best_room = offset - run_start;
          }
          run_start = kNoOffset;
        }
      }
      if (best == kNoOffset) best = run_start;  // no gap: on top
      CHECK_EQ(occupancy.first_fit(b, from, 200), first);
      CHECK_EQ(occupancy.best_fit(b, 200), best);
      CHECK_EQ(occupancy.first_fit(b, 0, problem.size[b] - 1), kNoOffset);
      offsets.push_back(generator.pick(0, 1) == 0 ? occupancy.first_fit(b, from, 200) : best);
      occupancy.place(b, offsets[b]);
      CHECK(occupancy.check_invariants());
    }
  }
}

// Tests that the rows of the neighbours come sorted, whatever has been placed since the last call,
// and that only those placed are in them.
TEST(neighbours_match_sorting) {
  oracle::Generator generator(12);
  for (const Bytes rarity : {2, 30}) {
    Problem problem = all_alive(std::vector<Bytes>(700, 0));
    for (Bytes& size : problem.size) size = generator.pick(0, 6);
    generator.relate(&problem, rarity);
    Neighbours neighbours(problem);
    std::vector<Bytes> offsets(problem.size.size(), kNoOffset);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      std::vector<bool> expected(1100, false);
      for (BufferIdx a = 0; a < b; ++a) {
        if (problem.size[b] == 0 || !oracle::listed(problem, a, b)) continue;
        std::fill_n(expected.begin() + offsets[a], problem.size[a], true);
      }
      std::vector<Interval> listed;
      neighbours.list(b, &listed);
      std::vector<bool> seen(1100, false);
      Bytes before = -1;
      for (const Interval& i : listed) {
        CHECK(before < i.lower && i.lower < i.upper);
        before = i.upper;
        std::fill(seen.begin() + i.lower, seen.begin() + i.upper, true);
      }
      CHECK(seen == expected);
      offsets[b] = generator.pick(0, 1000);
      neighbours.place(b, offsets[b]);
      CHECK(neighbours.check_invariants());
    }
    neighbours.clear();
    std::vector<Interval> listed;
    neighbours.list(0, &listed);
    CHECK(listed.empty());
  }
}

// Tests first fit of whole groups, with conflicts beyond lifetimes, against trying every offset.
TEST(fits_of_groups_match_every_offset) {
  oracle::Generator generator(13);
  for (int round = 0; round < 1500; ++round) {
    oracle::Features with = oracle::features(round % 16);
    with.pins = false;
    Problem problem = generator.problem(8, 6, 5, with);
    if (round % 3 != 0) generator.relate(&problem, 4);
    generator.gather(&problem);
    const Sections sections = sweep(problem);
    Occupancy occupancy(problem, sections);
    std::vector<Bytes> offsets(problem.size.size(), kNoOffset);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (offsets[b] != kNoOffset) continue;
      const auto with_block = [&](Bytes offset) {
        std::vector<Bytes> placed = offsets;
        for (BufferIdx a = 0; a < problem.count(); ++a) {
          const bool moves = problem.group[b] != kNoGroup && problem.group[a] == problem.group[b];
          if (moves) placed[a] = offset - problem.lead[b] + problem.lead[a];
        }
        placed[b] = offset;
        return placed;
      };
      const auto fits = [&](Bytes offset, Bytes limit) {
        if (offset < problem.lead[b]) return false;  // the first of the group would be below 0
        const std::vector<Bytes> placed = with_block(offset);
        for (BufferIdx a = 0; a < problem.count(); ++a) {
          if (placed[a] == kNoOffset) continue;
          if (!oracle::legal(problem, a, placed[a])) return false;
          if (offsets[a] == kNoOffset && placed[a] + problem.size[a] > limit) return false;
          for (BufferIdx c = 0; c < a; ++c) {
            if (placed[c] == kNoOffset) continue;
            if (oracle::conflict(problem, a, placed[a], c, placed[c])) return false;
          }
        }
        return true;
      };
      const Bytes from = generator.pick(0, 3);
      const Bytes limit = generator.pick(5, 60);
      Bytes first = kNoOffset;
      for (Bytes offset = from; offset <= limit && first == kNoOffset; ++offset) {
        if (fits(offset, limit)) first = offset;
      }
      CHECK_EQ(occupancy.first_fit(b, from, limit), first);
      const Bytes at = occupancy.best_fit(b, 400);
      CHECK(at != kNoOffset && fits(at, 400));
      occupancy.place(b, at);
      CHECK(occupancy.check_invariants());
      offsets = with_block(at);
    }
  }
}

// Tests that the example of MiniMalloc is planned at its capacity of 12, and no pass does worse
// than 16.
TEST(five_buffer_example) {
  CHECK_EQ(run(five_buffers(), {}).peak, 12);
  for (const std::string& order : greedy_orders()) {
    CHECK(run(five_buffers(), only(order)).peak <= 16);
  }
}

// Tests the example of static memory planning: 330 without reuse, 230 planned, in all orders.
TEST(example_of_source_003) {
  Problem problem;
  problem.start = {0, 2, 3, 10};
  problem.end = {10, 12, 8, 15};
  problem.size = {100, 50, 80, 100};
  for (const std::string& order : greedy_orders()) {
    const Plan plan = run(problem, only(order));
    CHECK_EQ(plan.peak, 230);
    CHECK(oracle::valid(problem, plan.offsets));
  }
}

// Tests that best fit takes the smallest gap where first fit takes the lowest.
TEST(best_fit_takes_the_smallest_gap) {
  // Two gaps at the bottom, of 5 and of 2, in the lifetime of the last buffer of size 2.
  Problem problem = all_alive({3, 3, 2});
  problem.pin = {5, 10, kNoOffset};
  const std::vector<Bytes> first = run(problem, only("size")).offsets;
  const std::vector<Bytes> best = run(problem, only("size", true)).offsets;
  CHECK_EQ(first[2], 0);
  CHECK_EQ(best[2], 8);
}

// Tests that the skyline never uses the room below what is placed, as the source has it.
TEST(skyline_places_on_top) {
  // The long buffer goes first by contention, the wide one rests on it and leaves a hole.
  Problem problem;
  problem.start = {0, 0, 2};
  problem.end = {2, 4, 4};
  problem.size = {5, 1, 3};
  const Plan plan = run(problem, only("tela"));
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK(plan.offsets == (std::vector<Bytes>{0, 5, 0}));
}

// Tests the skyline with conflicts and groups against its rule, with every row looked at in every
// turn: of those that can rest lowest, the first in the order goes next.
TEST(skyline_matches_its_rule) {
  oracle::Generator generator(15);
  for (int round = 0; round < 600; ++round) {
    oracle::Features with = oracle::features(round % oracle::kFeatureSets);
    with.pins = with.reserved = false;
    Problem problem = generator.problem(generator.pick(1, 14), 12, 7, with);
    if (round % 2 == 0) generator.relate(&problem, 4);
    if (round % 3 == 0) generator.gather(&problem);
    const Sections sections = sweep(problem);
    Stopper stopper(std::numeric_limits<double>::infinity());
    std::vector<BufferIdx> order;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      order.insert(order.begin() + generator.pick(0, b), b);
    }
    Limits limits;
    limits.nodes = limits.steps = kNoLimit;
    const Draft draft = Passes(problem, sections, stopper).on_skyline(order, limits);
    CHECK(draft.complete);
    CHECK_EQ(draft.stuck, -1);

    const Blocks blocks(problem);
    std::vector<Bytes> heights(sections.count, 0);
    std::vector<Bytes> offsets(order.size(), kNoOffset);
    for (std::size_t placed = 0; placed < order.size();) {
      BufferIdx next = -1;
      Bytes lowest = kMaxBytes;
      for (const BufferIdx b : blocks.firsts(order)) {
        if (offsets[b] != kNoOffset) continue;
        const Shape shape = blocks.shape(b);
        Bytes row = shape.below;
        blocks.for_each(b, [&](BufferIdx member, Bytes shift) {
          for (auto i = sections.span_begin[member]; i < sections.span_begin[member + 1]; ++i) {
            const Span& span = sections.spans[i];
            for (SectionIdx at = span.first; at <= span.last; ++at) {
              row = std::max(row, heights[at] - span.lower - shift);
            }
          }
          for (auto r = problem.conflicts.first(member); r != problem.conflicts.last(member); ++r) {
            const bool counts = problem.size[*r] > 0 && problem.size[member] > 0;
            if (counts && offsets[*r] != kNoOffset) {
              row = std::max(row, offsets[*r] + problem.size[*r] - shift);
            }
          }
        });
        row = shape.align(row);
        if (row < lowest) {
          lowest = row;
          next = b;
        }
      }
      blocks.for_each(next, [&](BufferIdx member, Bytes shift) {
        offsets[member] = lowest + shift;
        ++placed;
        for (auto i = sections.span_begin[member]; i < sections.span_begin[member + 1]; ++i) {
          const Span& span = sections.spans[i];
          for (SectionIdx at = span.first; at <= span.last; ++at) {
            heights[at] = std::max(heights[at], lowest + shift + span.upper);
          }
        }
      });
    }
    CHECK(draft.offsets == offsets);
    CHECK(oracle::valid(problem, draft.offsets));

    // Below its own peak it ends with a buffer that has no place, and names it.
    limits.bytes = draft.peak - 1;
    const Draft cut = Passes(problem, sections, stopper).on_skyline(order, limits);
    CHECK(!cut.complete || draft.peak == 0);
    if (cut.complete) continue;
    CHECK(cut.stuck >= 0);
    CHECK_EQ(cut.offsets[cut.stuck], kNoOffset);
  }
}

// Tests that a group of any number of members is listed, and placed on the skyline, once.
TEST(large_groups_are_placed_once) {
  Problem problem = all_alive(std::vector<Bytes>(600, 2));
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    problem.group.push_back(0);
    problem.lead.push_back(2 * b);
  }
  std::vector<BufferIdx> order;
  for (BufferIdx b = 0; b < problem.count(); ++b) order.push_back(b);
  CHECK(Blocks(problem).firsts(order) == std::vector<BufferIdx>{0});
  Stopper stopper(std::numeric_limits<double>::infinity());
  Limits limits;
  limits.nodes = limits.steps = kNoLimit;
  const Draft draft = Passes(problem, sweep(problem), stopper).on_skyline(order, limits);
  CHECK(draft.complete);
  CHECK_EQ(draft.nodes, 600);
  CHECK_EQ(draft.peak, 1200);
}

// Tests a skyline by itself, step by step: heights against a row of numbers, and turns against the
// lowest of all that wait.
TEST(skyline_keeps_its_invariants) {
  oracle::Generator generator(16);
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<SectionIdx>(generator.pick(1, 20));
    std::vector<Bytes> load;
    for (SectionIdx s = 0; s < count; ++s) load.push_back(generator.pick(0, 9));
    Skyline skyline(load);
    std::vector<Bytes> height(load.size(), 0);
    std::vector<std::pair<std::int32_t, SectionIdx>> waiting;
    for (std::int32_t step = 0; step < 60; ++step) {
      const auto first = static_cast<SectionIdx>(generator.pick(0, count - 1));
      const auto last = static_cast<SectionIdx>(generator.pick(first, count - 1));
      const Bytes to = generator.pick(0, 50);
      switch (generator.pick(0, 2)) {
        case 0:
          skyline.raise({first, last, 0, 1}, to);
          for (SectionIdx s = first; s <= last; ++s) height[s] = std::max(height[s], to);
          break;
        case 1:
          skyline.wait(first, step);
          waiting.emplace_back(step, first);
          break;
        default:
          if (waiting.empty()) break;
          const auto next = std::min_element(waiting.begin(), waiting.end(),
                                             [&height](const auto& x, const auto& y) {
                                               return std::make_pair(height[x.second], x.first) <
                                                      std::make_pair(height[y.second], y.first);
                                             });
          CHECK_EQ(skyline.next().place, next->first);
          CHECK_EQ(skyline.next().row, height[next->second]);
          skyline.pop();
          waiting.erase(next);
      }
      CHECK(skyline.check_invariants());
      CHECK_EQ(skyline.over({first, last, 0, 1}).height,
               *std::max_element(height.begin() + first, height.begin() + last + 1));
    }
  }
}

// Tests that hints are followed where they are free, and only there.
TEST(hints) {
  Problem problem = all_alive({4, 4, 4, 4});
  problem.hint = {8, 9, kNoOffset, 4};
  const Plan plan = run(problem, only("hint"));
  // 8 is taken where 9 is asked for: the second goes with the rest.
  CHECK(plan.offsets == (std::vector<Bytes>{8, 0, 12, 4}));
}

// Tests that a plan given as hints is found again as it is.
TEST(hints_reproduce_a_plan) {
  oracle::Generator generator(6);
  for (int round = 0; round < 200; ++round) {
    Problem problem = generator.problem(8, 8, 6, oracle::features(round % 16));
    const Plan plan = run(problem, only("size"));
    problem.hint = plan.offsets;
    CHECK(run(problem, only("hint")).offsets == plan.offsets);
  }
}

// Tests every order, fit and mix of constraints on random problems against the definition, with
// and without contraction, and the peak against the offsets.
TEST(every_order_with_every_constraint) {
  oracle::Generator generator(7);
  for (int round = 0; round < 8 * oracle::kFeatureSets; ++round) {
    const oracle::Features with = oracle::features(round % oracle::kFeatureSets);
    const Problem problem = generator.problem(generator.pick(0, 12), 10, 8, with);
    const Contract contract = round % 3 == 0 ? Contract::kNo : Contract::kYes;
    for (const std::string& order : greedy_orders()) {
      for (const bool best_fit : {false, true}) {
        const Plan plan = run(problem, only(order, best_fit), kNoLimit, contract);
        // These two have a way of their own to place, and no best fit.
        const bool answers = !best_fit || (order != "hint" && order != "tela");
        CHECK_EQ(plan.has_offsets(), answers);
        if (!answers) continue;
        CHECK(oracle::valid(problem, plan.offsets));
        CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
      }
    }
  }
}

// Tests the same with conflicts beyond lifetimes and contiguous groups, which only pins can stop.
TEST(every_order_with_conflicts_and_groups) {
  oracle::Generator generator(14);
  int stopped = 0;
  for (int round = 0; round < 8 * oracle::kFeatureSets; ++round) {
    const oracle::Features with = oracle::features(round % oracle::kFeatureSets);
    Problem problem = generator.problem(generator.pick(0, 12), 10, 8, with);
    if (round % 3 != 0) generator.relate(&problem, 3);
    if (round % 3 != 1) generator.gather(&problem);
    const Contract contract = round % 5 == 0 ? Contract::kNo : Contract::kYes;
    for (const std::string& order : greedy_orders()) {
      for (const bool best_fit : {false, true}) {
        const Plan plan = run(problem, only(order, best_fit), kNoLimit, contract);
        const bool answers = !best_fit || (order != "hint" && order != "tela");
        CHECK(answers || !plan.has_offsets());
        if (!answers) continue;
        stopped += plan.has_offsets() ? 0 : 1;
        CHECK(plan.has_offsets() || (!problem.pin.empty() && !problem.group.empty()));
        if (!plan.has_offsets()) continue;
        CHECK(oracle::valid(problem, plan.offsets));
        CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
      }
    }
  }
  CHECK(stopped > 0);
}

// Tests that a pin holds the whole group, and that two that need one place leave no plan.
TEST(pinned_groups) {
  Problem problem = all_alive({4, 2, 3, 1});
  problem.group = {0, 0, 0, kNoGroup};
  problem.lead = {0, 4, 6, 0};
  problem.pin = {kNoOffset, 5, kNoOffset, kNoOffset};
  for (const std::string& order : greedy_orders()) {
    CHECK(run(problem, only(order)).offsets == (std::vector<Bytes>{1, 5, 7, 0}));
  }
  problem.pin[3] = 8;
  CHECK(!run(problem, {}).has_offsets());
  problem.pin = {kNoOffset, 3, kNoOffset, kNoOffset};  // the first would begin below 0
  CHECK(!run(problem, {}).has_offsets());
}

// Tests that no plan exceeds the capacity, that a plan is found where the portfolio has one, and
// that none is claimed where it has not.
TEST(capacity) {
  oracle::Generator generator(8);
  int found = 0;
  int failed = 0;
  for (int round = 0; round < 600; ++round) {
    Problem problem = generator.problem(8, 6, 6, oracle::features(round % 32));
    const Bytes peak = run(problem, {}).peak;
    if (peak < 2) continue;
    problem.capacity = peak;
    const Plan at = run(problem, {});
    CHECK(at.has_offsets() && at.peak <= peak);
    CHECK(oracle::valid(problem, at.offsets));
    problem.capacity = peak - 1;
    const Plan below = run(problem, {});
    CHECK(!below.has_offsets() || oracle::valid(problem, below.offsets));
    ++(below.has_offsets() ? found : failed);
    if (!below.has_offsets()) CHECK(below.offsets.empty());
  }
  CHECK(failed > 300);
}

// Tests that the portfolio is never worse than its first pass, which nothing cuts short, and that
// it stops at the target.
TEST(portfolio) {
  oracle::Generator generator(9);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = generator.problem(40, 30, 50, {});
    const Plan plan = run(problem, {});
    CHECK(plan.peak <= run(problem, only("size")).peak);
    GreedyOptions easy;
    easy.target = kMaxBytes;
    CHECK_EQ(run(problem, easy).stats.restarts, 1);
    GreedyOptions reached;
    reached.target = plan.peak;
    const Plan again = run(problem, reached);
    CHECK_EQ(again.peak, plan.peak);
    CHECK(again.stats.restarts <= plan.stats.restarts);
    CHECK_EQ(again.stats.note, plan.stats.note);
  }
}

// Tests that placements are counted, and that a budget of them ends the portfolio: without a plan
// where it is too small for one, with the first plan where it is just enough.
TEST(node_budget) {
  const Problem problem = five_buffers();
  CHECK(!run(problem, {}, 4).has_offsets());
  CHECK_EQ(run(problem, {}, 4).stats.nodes, 4);
  const Plan plan = run(problem, {}, 5);
  CHECK(plan.has_offsets());
  CHECK_EQ(plan.stats.nodes, 5);
}

// Tests that a stopper that has run out leaves no plan, and no half of one.
TEST(stopper) {
  Stopper stopper(0);
  const Problem problem = five_buffers();
  const Plan plan = greedy(problem, sweep(problem), {}, kNoLimit, stopper);
  CHECK(!plan.has_offsets());
  CHECK(plan.offsets.empty());
}

// Tests that an interrupt by the caller ends the run and is in the statistics.
TEST(interrupt) {
  Stopper stopper(1e9, [] { return true; });
  const Problem problem = five_buffers();
  CHECK(greedy(problem, sweep(problem), {}, kNoLimit, stopper).stats.interrupted);
}

// Tests that times, sizes, pins and alignments at their limits do not overflow.
TEST(extremes) {
  Problem problem;
  problem.start = {std::numeric_limits<Time>::min(), 0, 0};
  problem.end = {0, std::numeric_limits<Time>::max(), 1};
  problem.size = {kMaxBytes, kMaxBytes / 2, kMaxBytes / 4};
  problem.alignment = {kMaxBytes, kMaxBytes / 2, 1};
  problem.pin = {kNoOffset, kMaxBytes / 2, kNoOffset};
  problem.hint = {kMaxBytes, kMaxBytes, kMaxBytes};
  for (const std::string& order : greedy_orders()) {
    const Plan plan = run(problem, only(order));
    CHECK(oracle::valid(problem, plan.offsets));
    CHECK_EQ(plan.peak, kMaxBytes);
  }
}

// Tests that groups as long as the address space do not overflow, and longer ones fit nowhere.
TEST(extremes_of_groups) {
  Problem problem;
  problem.start = {0, 1, 0};
  problem.end = {1, 2, 1};
  problem.size = {kMaxBytes, kMaxBytes, 1};
  problem.group = {0, 0, kNoGroup};
  problem.lead = {0, kMaxBytes, 0};
  CHECK(!run(problem, {}).has_offsets());
  problem.size = {kMaxBytes / 2, kMaxBytes / 2, 1};
  problem.lead = {0, kMaxBytes / 2, 0};
  problem.alignment = {kMaxBytes / 2, 1, 1};
  problem.conflicts = oracle::relation(3, {{1, 2}});
  CHECK(!run(problem, {}).has_offsets());
  problem.conflicts = {};
  for (const std::string& order : greedy_orders()) {
    const Plan plan = run(problem, only(order));
    CHECK_EQ(plan.has_offsets(), plan.peak == kMaxBytes);
  }
}

// Tests that first fit makes the same draft from short lists as from the trees, with few buffers
// and with many strips, also where it ends early.
TEST(short_lists_match_passes) {
  oracle::Generator generator(13);
  int complete = 0, stuck = 0, out_of_nodes = 0, unsuited = 0;
  for (int round = 0; round < 2000; ++round) {
    const bool long_time = round % 5 == 0;
    Problem problem = generator.problem(generator.pick(1, long_time ? 300 : 40),
                                        long_time ? 200 : 12, 6, oracle::features(round % 16));
    for (Gap& gap :
         problem.gaps) {  // some buffers that hold nothing, as one with a hole is unsuited
      if (round % 32 >= 16) break;
      gap = {gap.buffer, problem.start[gap.buffer], problem.end[gap.buffer], 0, 0};
    }
    const Sections sections = sweep(problem);
    if (!ShortLists::suits(problem, sections)) {
      ++unsuited;
      continue;
    }
    std::vector<BufferIdx> order(problem.size.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<BufferIdx>(i);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[generator.pick(0, static_cast<Bytes>(i) - 1)]);
    }
    Limits limits{generator.pick(1, 90), kNoLimit, generator.pick(0, 9) == 0 ? 5 : kNoLimit};
    Stopper stopper(std::numeric_limits<double>::infinity());
    const Draft expected = Passes(problem, sections, stopper).in_order(order, Fit::kFirst, limits);
    ShortLists lists(problem, sections, stopper);
    for (int again = 0; again < 2; ++again) {
      const Draft draft = lists.in_order(order, limits);
      CHECK(draft.offsets == expected.offsets);
      CHECK_EQ(draft.peak, expected.peak);
      CHECK_EQ(draft.nodes, expected.nodes);
      CHECK_EQ(draft.stuck, expected.stuck);
      CHECK_EQ(draft.complete, expected.complete);
    }
    // With a target, and a buffer that has a place from before.
    std::vector<Bytes> fixed(round % 2 == 0 ? 0 : order.size(), kNoOffset);
    if (!fixed.empty() && problem.pin.empty()) fixed[order[0]] = expected.offsets[order[0]];
    const Bytes target = limits.bytes / 2;
    const Packing packing =
        Passes(problem, sections, stopper).below(target, order, fixed, Fit::kFirst, limits);
    const Packing below = lists.below(target, order, fixed, limits);
    CHECK(below.offsets == packing.offsets && below.rejected == packing.rejected);
    CHECK_EQ(below.peak, packing.peak);
    CHECK_EQ(below.nodes, packing.nodes);
    CHECK_EQ(below.ended, packing.ended);
    CHECK_EQ(below.complete, packing.complete);
    complete += expected.complete;
    stuck += expected.stuck >= 0;
    out_of_nodes += !expected.complete && expected.stuck < 0;
  }
  for (const int count : {complete, stuck, out_of_nodes, unsuited}) CHECK(count > 50);
}

// Tests the squeaky wheel with every constraint: plans are valid and at the least peak that there
// is, some of them where a first pass was above it; what fails costs less than two passes.
TEST(squeaky_wheel_with_every_constraint) {
  oracle::Generator generator(12);
  Wheel wheel;
  const int rounds = static_cast<int>(check::rounds(160, 400));
  for (int round = 0; round < rounds; ++round) {
    Problem problem = generator.problem(generator.pick(1, 7), 8, 6, oracle::features(round % 16));
    if (round % 3 == 1) generator.relate(&problem, 4);
    if (round % 5 == 1) generator.gather(&problem);
    const Bytes least = oracle::least_peak(problem, 60);
    if (least > 60) continue;
    Stopper stopper(std::numeric_limits<double>::infinity());
    const Plan plan = squeaky_wheel(problem, sweep(problem), least, kNoLimit, stopper);
    wheel.see(problem, plan, least);
    CHECK(plan.has_offsets() || plan.stats.nodes < 2 * 100 + 2 * problem.count());
    Stopper again(std::numeric_limits<double>::infinity());
    CHECK(squeaky_wheel(problem, sweep(problem), least, kNoLimit, again).offsets == plan.offsets);
  }
  CHECK(wheel.found > rounds * 3 / 4);
  CHECK(wheel.moved > rounds / 40);
  CHECK(wheel.missed > 0);
}

// Tests that the squeaky wheel leaves the nodes of a whole pass, and stops when the stopper does.
TEST(squeaky_wheel_in_a_budget) {
  const Problem problem = five_buffers();
  const Sections sections = sweep(problem);
  Stopper stopper(std::numeric_limits<double>::infinity());
  const Plan none = squeaky_wheel(problem, sections, 12, 4 * 5 - 1, stopper);
  CHECK(!none.has_offsets());
  CHECK_EQ(none.stats.nodes, 0);
  CHECK_EQ(squeaky_wheel(problem, sections, 12, 4 * 5, stopper).peak, 12);
  CHECK(!squeaky_wheel(problem, sections, 11, kNoLimit, stopper).has_offsets());
  Stopper over(0);
  const Plan cut = squeaky_wheel(problem, sections, 12, kNoLimit, over);
  CHECK(!cut.has_offsets());
  CHECK_EQ(cut.stats.nodes, 0);
}

// Tests the squeaky wheel on the skyline with every constraint: plans are valid and at the least
// peak that there is, most of them found, the same ones again, and it ends with its nodes.
TEST(skyline_wheel_with_every_constraint) {
  oracle::Generator generator(16);
  Wheel wheel;
  for (int round = 0; round < 300; ++round) {
    Problem problem = generator.problem(generator.pick(1, 6), 8, 5, oracle::features(round % 16));
    if (round % 3 != 0) generator.relate(&problem, 4);
    if (round % 3 != 1) generator.gather(&problem);
    const Bytes least = oracle::least_peak(problem, 30);
    if (least > 30) continue;
    Stopper stopper(std::numeric_limits<double>::infinity());
    const Plan plan = skyline_wheel(problem, sweep(problem), least, 500, 7, stopper);
    wheel.see(problem, plan, least);
    CHECK(plan.has_offsets() || plan.stats.nodes >= 500);
    CHECK(plan.stats.nodes < 500 + problem.count() + 1);
    Stopper again(std::numeric_limits<double>::infinity());
    CHECK(skyline_wheel(problem, sweep(problem), least, 500, 7, again).offsets == plan.offsets);
    if (least > 0) {
      CHECK(!skyline_wheel(problem, sweep(problem), least - 1, 100, 7, stopper).has_offsets());
    }
  }
  CHECK(wheel.found > 200);
  CHECK(wheel.moved > 10);
  CHECK(wheel.missed > 0);
  Stopper over(0);
  CHECK_EQ(skyline_wheel(five_buffers(), sweep(five_buffers()), 12, 500, 7, over).stats.nodes, 0);
}

// Tests that an order that does not exist is refused by name.
// Tests plans in order of time under every mix of constraints, with conflicts and groups.
TEST(coalescing_with_every_constraint) {
  for (unsigned seed = 0; seed < check::rounds(960, 6000); ++seed) {
    oracle::Generator random(seed);
    Problem problem = random.problem(random.pick(1, 30), 20, 1 << random.pick(1, 12),
                                     oracle::features(seed % oracle::kFeatureSets));
    if (seed % 3 == 1) random.relate(&problem, 4);
    if (seed % 5 == 1) problem.pin.clear();  // those of a group may leave no plan at all
    if (seed % 5 == 1) random.gather(&problem);
    const Draft draft = coalescing_fit(problem, sweep(problem));
    CHECK(draft.complete);
    CHECK(oracle::valid(problem, draft.offsets));
    CHECK_EQ(draft.peak, oracle::peak(problem, draft.offsets));
  }
}

// Tests pinned groups, which may leave no plan: one is found where first fit finds one.
TEST(coalescing_around_pinned_groups) {
  int none = 0;
  for (unsigned seed = 0; seed < check::rounds(500, 2000); ++seed) {
    oracle::Generator random(seed);
    Problem problem = random.problem(8, 8, 9, oracle::features(2 + 4 * (seed % 2)));
    problem.group = {0, 0, 1, 1, kNoGroup, kNoGroup, kNoGroup, kNoGroup};
    problem.lead = {0, problem.size[0], 0, problem.size[2], 0, 0, 0, 0};
    if (!memplan::check(problem).empty()) continue;
    const Draft draft = coalescing_fit(problem, sweep(problem));
    CHECK_EQ(draft.complete, run(problem, only("size")).has_offsets());
    none += !draft.complete;
    if (draft.complete) CHECK(oracle::valid(problem, draft.offsets));
  }
  CHECK(none > 2);
}

// Tests that pieces that are given back grow together, and that sizes up to 2^62 have a place or
// none, without an overflow.
TEST(coalescing_to_the_extremes) {
  Problem problem;
  problem.start = {0, 0, 1};
  problem.end = {1, 1, 2};
  problem.size = {kMaxBytes / 2, kMaxBytes / 2, kMaxBytes};
  Draft draft = coalescing_fit(problem, sweep(problem));
  CHECK(draft.complete);
  CHECK_EQ(draft.peak, kMaxBytes);
  problem.alignment = {1, kMaxBytes, 1};  // no place but the bottom, and the other is larger
  problem.size = {kMaxBytes / 2, kMaxBytes / 4, 1};
  CHECK(!coalescing_fit(problem, sweep(problem)).complete);
  problem.group = {0, 0, kNoGroup};
  problem.lead = {0, kMaxBytes, 0};
  problem.alignment.clear();
  CHECK(!coalescing_fit(problem, sweep(problem)).complete);
}

Draft beam(const Problem& problem, int width, Bytes low, Bytes limit) {
  Stopper never(std::numeric_limits<double>::infinity());
  return beam_in_time(problem, sweep(problem), low, 1 + low / 16, limit, {width, kNoLimit}, never);
}

// Tests plans of beams, with alignments and buffers without a size or a lifetime, and that a limit
// holds.
TEST(beams_in_time) {
  for (unsigned seed = 0; seed < check::rounds(300, 3000); ++seed) {
    oracle::Generator random(seed);
    const Problem problem = random.problem(random.pick(1, 40), random.pick(1, 30), 12,
                                           oracle::features(seed % oracle::kFeatureSets));
    const Sections sections = sweep(problem);
    if (!beam_suits(problem, sections)) {
      CHECK(!problem.pin.empty() || !problem.gaps.empty() || !problem.reserved.empty());
      continue;
    }
    const std::vector<Bytes> load = loads(sections);
    const Bytes bound = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
    const int width = static_cast<int>(seed % 3) + 1;
    const Draft draft = beam(problem, width, bound, kMaxBytes);
    CHECK(draft.complete);
    CHECK(oracle::valid(problem, draft.offsets));
    CHECK_EQ(draft.peak, oracle::peak(problem, draft.offsets));
    CHECK(beam(problem, width, bound, kMaxBytes).offsets == draft.offsets);
    const Draft lower = beam(problem, 4 * width, bound, draft.peak - 1);
    CHECK(!lower.complete || lower.peak < draft.peak);
    CHECK(bound == 0 || !beam(problem, width, bound - 1, bound - 1).complete);
  }
}

// Tests that it looks ahead: b and c end together, so they lie side by side and leave one hole for
// d.
TEST(beam_joins_what_ends_together) {
  Problem problem;
  problem.start = {0, 0, 0, 2, 4};
  problem.end = {8, 4, 1, 4, 8};
  problem.size = {2, 1, 1, 1, 2};
  const Draft draft = beam(problem, 1, 4, 4);
  CHECK(draft.complete);
  CHECK_EQ(draft.peak, 4);
}

// Tests that the peak counts a buffer that is never live, and that a limit holds for it too.
TEST(beam_with_a_buffer_that_is_never_live) {
  Problem problem;
  problem.start = {0, 1, 3};
  problem.end = {2, 3, 3};
  problem.size = {1, 1, 9};
  CHECK_EQ(beam(problem, 1, 2, 9).peak, 9);
  CHECK(!beam(problem, 1, 2, 8).complete);
}

TEST(unknown_order) {
  std::string error;
  try {
    run(five_buffers(), only("sise"));
  } catch (const std::invalid_argument& e) {
    error = e.what();
  }
  CHECK(error.find("\"sise\"") != std::string::npos);
  CHECK(error.find("tflite_by_breadth") != std::string::npos);
}

// Tests that thousands of buffers are planned validly, with the same plan each time.
TEST(many_buffers) {
  oracle::Generator generator(10);
  const Problem problem = generator.problem(1500, 4000, 1000, oracle::features(31));
  const Plan plan = run(problem, {});
  CHECK(oracle::valid(problem, plan.offsets));
  CHECK(run(problem, {}).offsets == plan.offsets);
}

TEST_MAIN
