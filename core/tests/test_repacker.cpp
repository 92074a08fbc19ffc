// Tests of the repacker: its plans against brute force and against fresh solves, what it leaves
// where it is, and its parts one by one.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "memplan/bounds.h"
#include "memplan/repacker.h"
#include "model/subproblem.h"
#include "oracle.h"
#include "repack/arena.h"
#include "repack/ejection.h"
#include "repack/timetable.h"

using namespace memplan;

namespace {

constexpr Bytes kNoCapacity = 0;

Repacked fit(Repacker& repacker, Bytes capacity) {
  SolveOptions options;
  options.objective = Objective::kFit;
  return repacker.repack(capacity, options);
}

Repacked least(Repacker& repacker, Bytes capacity = kNoCapacity) {
  if (capacity == kNoCapacity) return repacker.repack(std::nullopt, {});
  return repacker.repack(capacity, {});
}

std::vector<Bytes> offsets_of(const Repacker& repacker, const std::vector<Slot>& slots) {
  std::vector<Bytes> offsets;
  for (const Slot slot : slots) offsets.push_back(repacker.offset(slot));
  return offsets;
}

Bytes least_peak_of(const Repacker& repacker) {
  return solve(repacker.problem(repacker.slots()), {}).peak;
}

// Row `b` of a problem, alone.
Problem row_of(const Problem& problem, BufferIdx b) {
  Problem row;
  row.start = {problem.start[b]};
  row.end = {problem.end[b]};
  row.size = {problem.size[b]};
  row.alignment = {problem.alignment_of(b)};
  row.pin = {problem.pin_of(b)};
  for (Gap gap : problem.gaps) {
    if (gap.buffer != b) continue;
    gap.buffer = 0;
    row.gaps.push_back(gap);
  }
  return row;
}

Problem buffers(std::vector<Time> start, std::vector<Time> end, std::vector<Bytes> size) {
  Problem problem;
  problem.start = std::move(start);
  problem.end = std::move(end);
  problem.size = std::move(size);
  return problem;
}

template <typename Error, typename Action>
bool throws(Action action) {
  try {
    action();
  } catch (const Error&) {
    return true;
  }
  return false;
}

// The status of a fit: `optimal` is only said where the peak is at the bound.
Status fitted_within(const Repacker& repacker, const Repacked& answer) {
  return repacker.peak() == answer.lower_bound ? Status::kOptimal : Status::kFits;
}

// As many bytes as any plan could need: stacked, above all pins and reserved ranges.
Bytes ample(const Problem& problem) {
  Bytes top = 16;
  for (const Bytes size : problem.size) top += size + 4;
  for (const Reserved& r : problem.reserved) top = std::max(top, r.upper + 64);
  return top + 64;
}

}  // namespace

TEST(places_all_that_it_is_given_and_moves_no_buffer_without_need) {
  Repacker repacker;
  const auto first = repacker.add(buffers({0, 3, 0, 9, 0}, {3, 9, 9, 21, 21}, {4, 4, 4, 4, 4}));
  const Repacked made = fit(repacker, 12);
  CHECK(made.status == Status::kOptimal);
  CHECK_EQ(made.moved, 0);
  CHECK(oracle::valid(repacker.problem(first), offsets_of(repacker, first)));
  const std::vector<Bytes> before = offsets_of(repacker, first);

  const auto second = repacker.add(buffers({9}, {21}, {4}));
  const Repacked grown = fit(repacker, 12);
  CHECK(grown.status == Status::kOptimal);
  CHECK_EQ(grown.stats.solver, "repack");
  CHECK_EQ(grown.moved, 0);
  CHECK(offsets_of(repacker, first) == before);
  CHECK_EQ(repacker.count(), std::size_t{6});
  CHECK(oracle::valid(repacker.problem(repacker.slots()), offsets_of(repacker, repacker.slots())));
}

TEST(says_no_with_proof_and_leaves_the_plan_as_it_was) {
  Repacker repacker;
  const auto slots = repacker.add(buffers({0, 0}, {2, 2}, {4, 4}));
  CHECK(fit(repacker, 8).has_plan());
  const std::vector<Bytes> before = offsets_of(repacker, slots);
  const auto more = repacker.add(buffers({1}, {3}, {1}));
  const Repacked refused = fit(repacker, 8);
  CHECK(refused.status == Status::kInfeasible);
  CHECK_EQ(refused.conflict.size(), std::size_t{3});
  CHECK(offsets_of(repacker, slots) == before);
  CHECK_EQ(repacker.offset(more[0]), kNoOffset);
  repacker.remove(more);
  const Repacked again = fit(repacker, 8);
  CHECK(again.status == Status::kOptimal);
  CHECK_EQ(again.moved, 0);
}

TEST(agrees_with_brute_force_on_random_sequences) {
  // Every mix of constraints, one buffer in or out at a time.
  for (int bits = 0; bits < oracle::kFeatureSets; ++bits) {
    for (unsigned seed = 0; seed < check::rounds(2, 12); ++seed) {
      oracle::Generator generator(1000 * static_cast<unsigned>(bits) + seed);
      const Problem pool = generator.problem(7, 6, 4, oracle::features(bits));
      Repacker repacker(pool.reserved);
      std::vector<Slot> slot_of(pool.size.size(), -1);
      for (int step = 0; step < 10; ++step) {
        const auto b = static_cast<BufferIdx>(generator.pick(0, pool.count() - 1));
        if (slot_of[b] >= 0) {
          repacker.remove({slot_of[b]});
          slot_of[b] = -1;
        } else {
          slot_of[b] = repacker.add(row_of(pool, b))[0];
        }
        const std::vector<Slot> slots = repacker.slots();
        Problem now = repacker.problem(slots);
        const Bytes limit = ample(now);
        const Bytes best = oracle::least_peak(now, limit);
        const Bytes capacity = generator.pick(1, 20);
        const Repacked fitted = fit(repacker, capacity);
        if (best <= capacity) {
          CHECK(fitted.status == fitted_within(repacker, fitted));
          now.capacity = capacity;
          CHECK(oracle::valid(now, offsets_of(repacker, slots)));
          CHECK(fitted.lower_bound <= best);
        } else {
          CHECK(fitted.status == Status::kInfeasible);
        }
        if (step % 3 != 0) continue;
        now.capacity.reset();
        const Repacked smallest = least(repacker);
        CHECK(smallest.status == Status::kOptimal);
        CHECK_EQ(repacker.peak(), best);
        CHECK(smallest.lower_bound <= best);
        CHECK(oracle::valid(now, offsets_of(repacker, slots)));
      }
    }
  }
}

TEST(fits_wherever_a_fresh_solve_does) {
  oracle::Generator generator(7);
  const Problem pool = generator.problem(160, 40, 50, {});
  Repacker repacker;
  std::vector<Slot> slot_of(pool.size.size(), -1);
  int warm = 0;
  for (int step = 0; step < 120; ++step) {
    for (int k = 0; k < 6; ++k) {
      const auto b = static_cast<BufferIdx>(generator.pick(0, pool.count() - 1));
      if (slot_of[b] >= 0) {
        repacker.remove({slot_of[b]});
        slot_of[b] = -1;
      } else {
        slot_of[b] = repacker.add(row_of(pool, b))[0];
      }
    }
    const std::vector<Slot> slots = repacker.slots();
    Problem now = repacker.problem(slots);
    const Plan best = solve(now, {});
    if (best.peak == 0) continue;
    warm += fit(repacker, 5 * best.peak / 4).stats.solver == "repack" ? 1 : 0;
    const std::vector<Bytes> before = offsets_of(repacker, slots);
    const Repacked fitted = fit(repacker, best.peak);
    CHECK(fitted.status == fitted_within(repacker, fitted));
    now.capacity = best.peak;
    const std::vector<Bytes> after = offsets_of(repacker, slots);
    CHECK(oracle::valid(now, after));
    std::int64_t moved = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      moved += before[i] != kNoOffset && before[i] != after[i] ? 1 : 0;
    }
    CHECK_EQ(fitted.moved, moved);
    CHECK(!fit(repacker, best.peak - 1).has_plan() || best.status != Status::kOptimal);
    CHECK(offsets_of(repacker, slots) == after);
  }
  CHECK(warm > 100);
}

TEST(gives_the_same_plans_again) {
  const auto play = [] {
    oracle::Generator generator(3);
    Repacker repacker;
    std::vector<Bytes> seen;
    for (int step = 0; step < 30; ++step) {
      repacker.add(generator.problem(8, 20, 30, {}));
      std::vector<Slot> slots = repacker.slots();
      if (slots.size() > 40) repacker.remove({slots.begin(), slots.begin() + 8});
      slots = repacker.slots();
      const Repacked least_now = least(repacker);
      seen.push_back(least_now.moved);
      for (const Bytes offset : offsets_of(repacker, slots)) seen.push_back(offset);
    }
    return seen;
  };
  CHECK(play() == play());
}

TEST(pins_push_others_away) {
  Repacker repacker;
  const auto free = repacker.add(buffers({0, 0}, {4, 4}, {4, 4}));
  CHECK(fit(repacker, 12).has_plan());
  Problem pinned = buffers({1}, {2}, {4});
  pinned.pin = {0};
  const auto pin = repacker.add(pinned);
  const Repacked answer = fit(repacker, 12);
  CHECK(answer.status == fitted_within(repacker, answer));
  CHECK_EQ(repacker.offset(pin[0]), 0);
  CHECK_EQ(answer.moved, 1);
  CHECK(oracle::valid(repacker.problem(repacker.slots()), offsets_of(repacker, repacker.slots())));
  CHECK(fit(repacker, 11).status == Status::kInfeasible);
  CHECK_EQ(free.size(), std::size_t{2});
}

TEST(a_pin_above_the_capacity_is_a_proof) {
  Repacker repacker;
  Problem pinned = buffers({0}, {2}, {4});
  pinned.pin = {8};
  const auto slots = repacker.add(pinned);
  const Repacked answer = fit(repacker, 11);
  CHECK(answer.status == Status::kInfeasible);
  CHECK(answer.conflict == slots);
  CHECK(fit(repacker, 12).has_plan());
}

TEST(refuses_what_it_cannot_keep_and_stays_as_it_was) {
  Repacker repacker({{4, 8}});
  const auto slots = repacker.add(buffers({0}, {2}, {4}));
  Problem wrong = buffers({0, 3}, {2, 3}, {1, 1});
  CHECK(throws<std::invalid_argument>([&] { repacker.add(wrong); }));
  Problem related = buffers({0, 2}, {2, 4}, {1, 1});
  related.conflicts = oracle::relation(2, {{0, 1}});
  CHECK(throws<std::invalid_argument>([&] { repacker.add(related); }));
  Problem reserved = buffers({0}, {2}, {4});
  reserved.pin = {6};
  CHECK(throws<std::invalid_argument>([&] { repacker.add(reserved); }));
  Problem first = buffers({0}, {2}, {4});
  first.pin = {8};
  repacker.add(first);
  Problem second = buffers({1}, {3}, {4});
  second.pin = {10};
  CHECK(throws<std::invalid_argument>([&] { repacker.add(second); }));
  CHECK(throws<std::invalid_argument>(
      [&] { repacker.add(buffers({0, 4}, {2, 6}, {kMaxBytes - 4, 4})); }));
  CHECK(throws<std::out_of_range>([&] { repacker.remove({slots[0], slots[0]}); }));
  CHECK(throws<std::out_of_range>([&] { repacker.remove({slots[0], 99}); }));
  CHECK(throws<std::out_of_range>([&] { repacker.offset(-1); }));
  CHECK(throws<std::invalid_argument>([] { Repacker twice({{0, 4}, {2, 6}}); }));
  CHECK_EQ(repacker.count(), std::size_t{2});
  CHECK(fit(repacker, 12).has_plan());
}

TEST(an_error_of_the_solver_changes_nothing) {
  SolveOptions options;
  options.solver = "no such solver";
  int asked = 0;
  for (unsigned seed = 0; seed < check::rounds(8, 20); ++seed) {
    oracle::Generator generator(seed);
    Repacker repacker;
    repacker.add(generator.problem(40, 10, 30, {}));
    CHECK(fit(repacker, kMaxBytes).has_plan());
    const std::vector<Bytes> before = offsets_of(repacker, repacker.slots());
    const Bytes capacity = least_peak_of(repacker);
    try {
      repacker.repack(capacity, options);
    } catch (const std::invalid_argument&) {
      ++asked;
      CHECK(offsets_of(repacker, repacker.slots()) == before);
      CHECK(fit(repacker, capacity).has_plan());
    }
  }
  CHECK(asked > 0);
}

TEST(a_budget_of_nodes_ends_it_without_an_answer) {
  oracle::Generator generator(5);
  Repacker repacker;
  repacker.add(generator.problem(40, 10, 30, {}));
  SolveOptions options;
  options.objective = Objective::kFit;
  options.budget.nodes = 3;
  CHECK(repacker.repack(Bytes{1} << 40, options).status == Status::kUnknown);
  options.budget.nodes = 40;
  const Repacked loose = repacker.repack(Bytes{1} << 40, options);
  CHECK(loose.status == fitted_within(repacker, loose));
}

TEST(a_copy_goes_its_own_way) {
  Repacker repacker;
  const auto slots = repacker.add(buffers({0, 0}, {2, 2}, {4, 4}));
  CHECK(fit(repacker, 8).has_plan());
  Repacker copy = repacker;
  copy.remove({slots[0]});
  copy.add(buffers({0}, {2}, {8}));
  CHECK(fit(copy, 12).has_plan());
  CHECK_EQ(copy.peak(), 12);
  CHECK_EQ(repacker.peak(), 8);
  repacker = copy;
  CHECK_EQ(repacker.peak(), 12);
}

TEST(a_stored_repacker_goes_on_as_the_first_one) {
  for (unsigned seed = 0; seed < check::rounds(20, 400); ++seed) {
    oracle::Generator generator(seed);
    const bool gaps = seed % 3 == 0;
    oracle::Features features;
    features.gaps = gaps;
    features.alignment = seed % 2 == 0;
    Repacker first;
    for (int step = 0; step < 12; ++step) {
      Repacker second = Repacker::restored(first.save());
      CHECK(second.save() == first.save());
      const Problem more = generator.problem(seed % 5 == 0 ? 30 : 4, 20, 30, features);
      const std::vector<Slot> slots = first.slots();
      const std::vector<Slot> gone(slots.begin(),
                                   slots.begin() + static_cast<int>(slots.size() / 3));
      for (Repacker* each : {&first, &second}) {
        if (step % 3 == 2) each->remove(gone);
        each->add(more);
        SolveOptions options;
        options.budget.nodes = 500;
        options.objective = step % 4 == 1 ? Objective::kFit : Objective::kMinPeak;
        const bool asks = step % 2 == 1;
        if (asks) each->repack(each->lower_bound() + 3, options);
      }
      CHECK(second.slots() == first.slots());
      CHECK(second.save() == first.save());
    }
  }
}

TEST(what_is_no_stored_repacker_is_refused) {
  Repacker repacker({{40, 44}});
  repacker.add(buffers({0, 0, 1}, {2, 2, 4}, {4, 4, 2}));
  CHECK(fit(repacker, 64).has_plan());
  const std::vector<std::int64_t> saved = repacker.save();
  CHECK_EQ(Repacker::restored(saved).peak(), repacker.peak());
  const auto is_refused = [](std::vector<std::int64_t> words) {
    try {
      Repacker::restored(std::move(words));
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  for (std::size_t count = 0; count < saved.size(); ++count) {
    CHECK(is_refused({saved.begin(), saved.begin() + static_cast<int>(count)}));
  }
  std::vector<std::int64_t> longer = saved;
  longer.push_back(0);
  CHECK(is_refused(longer));
  for (std::size_t at = 0; at < saved.size(); ++at) {
    // The looks that were made so far, and keys of an order, may be any number.
    std::vector<std::int64_t> damaged = saved;
    damaged[at] = std::numeric_limits<std::int64_t>::min() + 1;
    is_refused(damaged);
  }
  longer = saved;
  ++longer[0];
  CHECK(is_refused(longer));
}

TEST(no_other_call_comes_in_between) {
  oracle::Generator generator(23);
  Repacker repacker;
  const auto slots = repacker.add(generator.problem(60, 9, 30, {}));
  SolveOptions options;
  bool refused = false;
  options.interrupt = [&] {
    refused = refused || throws<std::runtime_error>([&] { repacker.remove({slots[0]}); });
    return true;
  };
  for (Bytes capacity = 1000; capacity > 100 && !refused; --capacity) {
    repacker.repack(capacity, options);
  }
  CHECK(refused);
  CHECK_EQ(repacker.count(), std::size_t{60});
  CHECK(fit(repacker, kMaxBytes).has_plan());
}

TEST(nothing_at_all_fits) {
  Repacker repacker;
  CHECK(fit(repacker, 1).status == Status::kOptimal);
  CHECK(least(repacker).status == Status::kOptimal);
  CHECK_EQ(repacker.peak(), 0);
  CHECK(repacker.add({}).empty());
  const auto slots = repacker.add(buffers({0}, {2}, {4}));
  CHECK_EQ(repacker.lower_bound(), 4);
  repacker.remove(slots);
  CHECK_EQ(repacker.lower_bound(), 0);
  CHECK_EQ(least(repacker).lower_bound, 0);
}

TEST(times_and_sizes_at_their_limits_do_not_overflow) {
  constexpr Time kUtmost = Time{1} << 62;
  Repacker repacker;
  repacker.add(buffers({-kUtmost, -kUtmost, kUtmost - 1}, {kUtmost, 1 - kUtmost, kUtmost},
                       {kMaxBytes / 2, kMaxBytes / 4, kMaxBytes / 4}));
  const Repacked answer = least(repacker);
  CHECK(answer.status == Status::kOptimal);
  CHECK_EQ(repacker.peak(), kMaxBytes / 4 * 3);
  CHECK(fit(repacker, kMaxBytes / 4 * 3 - 1).status == Status::kInfeasible);
}

TEST(the_timetable_finds_exactly_those_that_are_there_then) {
  oracle::Generator generator(11);
  for (const Time horizon : {3, 50, 4000, 1000000}) {
    repack::Timetable timetable(0, horizon / 2, 64);  // half of the times are beyond
    std::vector<repack::Tenant> all;
    for (Slot slot = 0; slot < 200; ++slot) {
      const Time start = generator.pick(0, horizon - 1);
      const Time end = generator.pick(0, 1) == 0 ? generator.pick(start + 1, horizon)
                                                 : std::min(horizon, start + generator.pick(1, 9));
      const Bytes lower = generator.pick(0, 90);
      all.push_back({lower, lower + generator.pick(1, 9), start, end, slot});
      timetable.put(all.back());
      CHECK(timetable.check_invariants());
      if (slot % 3 != 0) continue;
      const auto gone =
          static_cast<std::size_t>(generator.pick(0, static_cast<Bytes>(all.size()) - 1));
      timetable.take(all[gone].slot);
      CHECK(!timetable.has(all[gone].slot));
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    for (int k = 0; k < 100; ++k) {
      const Time start = generator.pick(0, horizon - 1);
      const Time end = generator.pick(start + 1, horizon);
      std::vector<Slot> expected;
      for (const repack::Tenant& tenant : all) {
        if (tenant.start < end && start < tenant.end) expected.push_back(tenant.slot);
      }
      std::vector<Slot> found;
      timetable.meet(start, end, [&](const repack::Tenant& t) { found.push_back(t.slot); });
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      CHECK(found == expected);
    }
  }
}

TEST(the_lowest_place_is_the_lowest) {
  oracle::Generator generator(13);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = generator.problem(9, 8, 6, {true, false, round % 2 == 0});
    repack::Arena arena(problem.reserved);
    arena.make_room(0, 8, 9);
    std::vector<Slot> slots;
    for (BufferIdx b = 0; b < problem.count(); ++b) slots.push_back(arena.add(problem, b, {}));
    std::vector<Bytes> offsets;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      const Bytes limit = generator.pick(10, 60);
      Bytes expected = kNoOffset;
      for (Bytes at = 0; at + problem.size[b] <= limit && expected == kNoOffset; ++at) {
        bool free = oracle::legal(problem, b, at);
        for (BufferIdx a = 0; a < b; ++a) {
          free =
              free && (offsets[a] == kNoOffset || !oracle::conflict(problem, a, offsets[a], b, at));
        }
        if (free) expected = at;
      }
      CHECK_EQ(arena.lowest_place(slots[b], limit), expected);
      offsets.push_back(expected);
      if (expected != kNoOffset) arena.place(slots[b], expected);
      CHECK(arena.check_invariants());
    }
  }
}

// Tests that many new buffers are planned at once, and that later a few of them are mended again.
TEST(many_at_once_are_planned_again_and_few_are_mended) {
  oracle::Generator generator(5);
  const Problem problem = generator.problem(400, 200, 99, {});
  Repacker repacker;
  const std::vector<Slot> slots = repacker.add(problem);
  const Bytes capacity = 2 * repacker.lower_bound();
  SolveOptions options;
  options.objective = Objective::kFit;
  Repacked answer = repacker.repack(capacity, options);
  CHECK(answer.has_plan());
  CHECK_EQ(answer.stats.solver, "greedy");
  std::vector<Bytes> offsets;
  for (const Slot slot : slots) offsets.push_back(repacker.offset(slot));
  CHECK(oracle::valid(problem, offsets));
  repacker.remove({slots[7]});
  repacker.add(subproblem(problem, {7}));
  answer = repacker.repack(capacity, options);
  CHECK(answer.has_plan());
  CHECK_EQ(answer.stats.solver, "repack");
  CHECK_EQ(answer.moved, 0);
}

TEST(undoing_takes_everything_back) {
  oracle::Generator generator(17);
  const Problem problem = generator.problem(30, 10, 9, {});
  repack::Arena arena({});
  arena.make_room(0, 10, 30);
  std::vector<Slot> slots;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    slots.push_back(arena.add(problem, b, {}));
    arena.place(slots.back(), arena.lowest_place(slots.back(), kMaxBytes));
  }
  CHECK_EQ(arena.settle(), 0);
  std::vector<Bytes> before;
  for (const Slot slot : slots) before.push_back(arena.offset(slot));
  Stopper stopper(std::numeric_limits<double>::infinity());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Slot> out(slots.begin(), slots.begin() + 12);
    for (const Slot slot : out) arena.displace(slot);
    repack::Ejection ejection(arena, seed, stopper);
    ejection.insert(out, arena.load_at(5) + 3, 50, arena.looks() + (seed % 2 == 0 ? 10'000 : 100));
    CHECK(arena.check_invariants());
    arena.undo_to(0);
    CHECK(arena.check_invariants());
    for (std::size_t i = 0; i < slots.size(); ++i) CHECK_EQ(arena.offset(slots[i]), before[i]);
  }
  CHECK_EQ(arena.settle(), 0);
}

TEST_MAIN
