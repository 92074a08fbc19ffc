// Tests of the choice of items for a memory: small problems against all choices.
#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "memplan/choice.h"

using namespace memplan;

namespace {

class Builder {
 public:
  explicit Builder(unsigned seed) : random_(seed) {}

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int many) { return pick(1, many) == 1; }

  ChoiceProblem build() {
    ChoiceProblem problem;
    const int memories = one_in(2) ? 1 : pick(2, 3);
    for (int m = 0; m < memories; ++m) problem.capacity.push_back(pick(0, one_in(3) ? 20 : 9));
    const int most = one_in(3) ? 3 : 9;
    for (int count = pick(1, 11); count > 0;) {
      problem.must.push_back(one_in(10) ? 1 : 0);
      const int start = pick(0, 8);
      const int length = pick(1, 6);
      const bool is_moving = one_in(3) && problem.must.back() == 0;
      for (int places = pick(1, 3); places > 0 && count > 0; --places, --count) {
        problem.start.push_back(is_moving ? pick(0, 8) : start);
        problem.end.push_back(problem.start.back() + (is_moving ? pick(1, 6) : length));
        problem.bytes.push_back(one_in(12) ? 0 : pick(1, most));
        problem.worth.push_back(one_in(10) ? 0 : pick(1, one_in(4) ? 1000 : 12));
        problem.memory.push_back(pick(0, memories - 1));
        problem.unit.push_back(static_cast<std::int32_t>(problem.must.size()) - 1);
      }
    }
    for (int sets = pick(0, 3); sets > 0; --sets) {
      problem.refused.emplace_back();
      for (std::size_t i = 0; i < problem.bytes.size(); ++i) {
        if (one_in(3)) problem.refused.back().push_back(static_cast<std::int32_t>(i));
      }
    }
    return problem;
  }

 private:
  std::mt19937 random_;
};

bool has(std::uint32_t chosen, std::size_t i) { return (chosen >> i & 1) != 0; }

bool fits(const ChoiceProblem& problem, std::uint32_t chosen) {
  for (std::size_t unit = 0; unit < problem.must.size(); ++unit) {
    bool has_item = false;
    for (std::size_t i = 0; i < problem.bytes.size(); ++i) {
      has_item |= has(chosen, i) && problem.unit[i] == static_cast<std::int32_t>(unit);
    }
    if (problem.must[unit] != 0 && !has_item) return false;
  }
  for (const std::vector<std::int32_t>& set : problem.refused) {
    const auto is_in = [&](std::int32_t i) { return has(chosen, static_cast<std::size_t>(i)); };
    if (!set.empty() && std::all_of(set.begin(), set.end(), is_in)) return false;
  }
  for (const Time time : problem.start) {
    std::vector<Bytes> held(problem.capacity.size(), 0);
    std::vector<int> live(problem.must.size(), 0);
    for (std::size_t i = 0; i < problem.bytes.size(); ++i) {
      if (!has(chosen, i) || problem.start[i] > time || time >= problem.end[i]) continue;
      held[static_cast<std::size_t>(problem.memory[i])] += problem.bytes[i];
      if (++live[static_cast<std::size_t>(problem.unit[i])] > 1) return false;
    }
    for (std::size_t m = 0; m < held.size(); ++m) {
      if (held[m] > problem.capacity[m]) return false;
    }
  }
  return true;
}

std::int64_t worth(const ChoiceProblem& problem, std::uint32_t chosen) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < problem.bytes.size(); ++i)
    sum += has(chosen, i) ? problem.worth[i] : 0;
  return sum;
}

// The best worth, or -1 if there is no choice.
std::int64_t best_of(const ChoiceProblem& problem) {
  std::int64_t best = -1;
  for (std::uint32_t chosen = 0; chosen < 1U << problem.bytes.size(); ++chosen) {
    const std::int64_t sum = worth(problem, chosen);
    if (sum > best && fits(problem, chosen)) best = sum;
  }
  return best;
}

std::uint32_t bits(const std::vector<std::uint8_t>& chosen) {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) found |= chosen[i] != 0 ? 1U << i : 0U;
  return found;
}

}  // namespace

TEST(choices_of_small_problems_are_the_best) {
  unsigned proved = 0;
  const unsigned rounds = check::rounds(2000, 20000);
  for (unsigned round = 0; round < rounds; ++round) {
    const ChoiceProblem problem = Builder(round).build();
    const std::int64_t best = best_of(problem);
    const Choice found = choose(problem);
    if (best < 0) {
      CHECK(found.status == Status::kInfeasible);
      ++proved;
      continue;
    }
    CHECK(found.status == Status::kOptimal || found.status == Status::kFeasible);
    CHECK(fits(problem, bits(found.chosen)));
    CHECK(found.worth == worth(problem, bits(found.chosen)));
    CHECK(found.worth <= best);
    CHECK(found.bound >= best);
    if (found.status == Status::kOptimal) CHECK(found.worth == found.bound);
    proved += found.status == Status::kOptimal ? 1U : 0U;
  }
  CHECK_EQ(proved, rounds);
}

// A search that ends at once has a choice and a bound.
TEST(a_budget_leaves_a_choice_and_a_bound) {
  for (int round = 0; round < 300; ++round) {
    const ChoiceProblem problem = Builder(static_cast<unsigned>(round)).build();
    const std::int64_t best = best_of(problem);
    for (const std::int64_t nodes : {0, 1, 5, 20}) {
      ChoiceOptions options;
      options.budget.nodes = nodes;
      const Choice found = choose(problem, options);
      if (best < 0 || found.chosen.empty()) continue;
      CHECK(fits(problem, bits(found.chosen)));
      CHECK(found.worth <= best && best <= found.bound);
    }
  }
}

// Sixty items that the sweep cannot go through within these nodes: what it dropped or did not come
// to may be better, so it proves nothing.
TEST(a_search_that_is_cut_short_proves_nothing) {
  int cut = 0, sets = 0;
  for (unsigned seed = 0; seed < check::rounds(12, 400); ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    ChoiceProblem problem;
    for (int i = 0; i < 60; ++i) {
      const Time start = pick(0, 30);
      problem.start.push_back(start);
      problem.end.push_back(start + pick(2, 25));
      problem.bytes.push_back(pick(20, 99));
      problem.worth.push_back(problem.bytes.back() * 10 + pick(0, 99));
      problem.memory.push_back(pick(0, 1));
      problem.unit.push_back(i);
      problem.must.push_back(0);
    }
    problem.capacity = {pick(150, 300), pick(150, 300)};
    if (seed % 2 == 1) problem.refused = {{0, 1}, {2, 3, 4}};
    ChoiceOptions options;
    options.budget.nodes = 500'000;
    const Choice best = choose(problem, options);
    if (best.status != Status::kOptimal) continue;
    ++sets;
    for (const std::int64_t nodes : {100, 300, 1000, 3000, 10000}) {
      options.budget.nodes = nodes;
      const Choice found = choose(problem, options);
      CHECK(found.bound >= best.worth && found.worth <= best.worth);
      CHECK(found.status == Status::kFeasible || found.status == Status::kOptimal);
      CHECK_EQ(found.status == Status::kOptimal, found.worth == found.bound);
      cut += found.status == Status::kFeasible ? 1 : 0;
    }
  }

  CHECK(sets > 3 && cut > sets);
}

// Two items of one half each and one of more than a half: the relaxation takes parts of it.
TEST(items_above_a_half_are_counted) {
  ChoiceProblem problem;
  for (int i = 0; i < 30; ++i) {
    problem.start.push_back(0);
    problem.end.push_back(10);
    problem.bytes.push_back(60 + i);
    problem.worth.push_back(1000 + i);
    problem.memory.push_back(0);
    problem.unit.push_back(i);
    problem.must.push_back(0);
  }
  problem.capacity = {110};
  const Choice found = choose(problem);
  CHECK(found.status == Status::kOptimal);
  CHECK(found.worth == 1029);
  CHECK(found.nodes < 3000);
}

TEST(prices_are_of_moments) {
  const ChoiceProblem problem{{0, 0, 5}, {5, 5, 10}, {6, 6, 6}, {12, 6, 6}, {0, 0, 0},
                              {0, 1, 2}, {0, 0, 0},  {6},       {}};
  const Choice found = choose(problem);
  CHECK(found.worth == 18 && found.status == Status::kOptimal);
  CHECK((found.times == std::vector<Time>{0, 5, 10}));
  CHECK(found.prices.size() == 1 && found.prices[0].size() == 2);
  CHECK(found.prices[0][0] > 0);
}

// A training step: each layer has a tensor that the next one reads, and that is read again on the
// way back. Its runs go from one access to a later one. The flow alone would choose all of them at
// once.
TEST(runs_of_a_buffer_exclude_each_other_in_the_bound) {
  constexpr int kLayers = 60;
  std::mt19937 random(1);
  ChoiceProblem problem;
  std::int64_t total = 0;
  const auto add = [&](int start, int end, Bytes bytes, std::int64_t reads) {
    problem.start.push_back(start);
    problem.end.push_back(end);
    problem.bytes.push_back(bytes);
    problem.worth.push_back(bytes * reads);
    problem.memory.push_back(0);
    problem.unit.push_back(static_cast<std::int32_t>(problem.must.size()) - 1);
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    const Bytes bytes = 100 + static_cast<Bytes>(random() % 900);
    const int back = 2 * kLayers - layer;
    problem.must.push_back(0);
    add(layer, layer + 2, bytes, 1);
    add(layer, back + 1, bytes, 3);
    add(layer, back + 3, bytes, 4);
    add(layer + 1, back + 1, bytes, 1);
    add(back, back + 3, bytes, 1);
    total += bytes;
  }
  for (const std::int64_t percent : {10, 25, 50, 75}) {
    problem.capacity = {total * percent / 100};
    ChoiceOptions options;
    options.budget.nodes = 300000;
    const Choice found = choose(problem, options);
    for (int time = 0; time < 2 * kLayers + 3; ++time) {
      Bytes held = 0;
      std::vector<int> live(problem.must.size(), 0);
      for (std::size_t i = 0; i < problem.bytes.size(); ++i) {
        if (found.chosen[i] == 0 || problem.start[i] > time || time >= problem.end[i]) continue;
        held += problem.bytes[i];
        CHECK(++live[static_cast<std::size_t>(problem.unit[i])] == 1);
      }
      CHECK(held <= problem.capacity[0]);
    }
    CHECK(found.worth <= found.bound);
    CHECK(found.bound - found.worth <= found.worth / 200);
  }
}

TEST(a_wrong_problem_is_refused) {
  const auto refused = [](const ChoiceProblem& problem, const std::string& words) {
    CHECK(memplan::check(problem).find(words) != std::string::npos);
    try {
      choose(problem);
      CHECK(false);
    } catch (const std::invalid_argument&) {
    }
  };
  const ChoiceProblem right{{0}, {1}, {1}, {1}, {0}, {0}, {0}, {1}, {}};
  CHECK(memplan::check(right).empty());
  ChoiceProblem wrong = right;
  wrong.end = {0};
  refused(wrong, "ends before");
  wrong = right;
  wrong.worth = {-1};
  refused(wrong, "less than 0");
  wrong = right;
  wrong.worth = {std::int64_t{1} << 60};
  refused(wrong, "2^53");
  wrong = right;
  wrong.refused = {{1}};
  refused(wrong, "unknown item");
  wrong = right;
  wrong.memory = {1};
  refused(wrong, "no memory");
  wrong = right;
  wrong.unit = {-1};
  refused(wrong, "no unit");
  wrong = {{0, 1}, {1, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1}, {1}, {}};
  refused(wrong, "other times");
  wrong = right;
  wrong.capacity = std::vector<Bytes>(17, 1);
  refused(wrong, "16 memories");
  wrong = right;
  wrong.capacity = {-1};
  refused(wrong, "capacity");
  CHECK(choose({}).status == Status::kOptimal);
}

TEST_MAIN
