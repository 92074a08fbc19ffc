// Tests of learned backtracking: the oracle against brute force, what is written down, and what a
// model makes of its scores.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "memplan/exact.h"
#include "memplan/learning.h"
#include "oracle.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/collecting.h"
#include "published/telamalloc/learned.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

Stopper never() { return Stopper(std::numeric_limits<double>::infinity()); }

const CompleteSearch kComplete = [](const Problem& problem, const Sections& sections, Bytes limit,
                                    std::int64_t nodes, Stopper& stopper) {
  return exact_fit(problem, sections, limit, {}, nodes, 1, 0, stopper);
};

std::vector<BufferIdx> all(const Problem& problem) {
  std::vector<BufferIdx> rows(problem.size.size());
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

bool fits(Problem problem, const std::vector<Placement>& path, std::size_t length) {
  problem.pin.resize(problem.size.size(), kNoOffset);
  for (std::size_t level = 0; level < length; ++level) {
    problem.pin[path[level].buffer] = path[level].offset;
  }
  return oracle::least_peak(problem, *problem.capacity + 1) <= *problem.capacity;
}

// The definition, by trying every plan.
std::optional<std::int32_t> deepest(const Problem& problem, const std::vector<Placement>& path) {
  std::optional<std::int32_t> found;
  for (std::size_t length = 0; length <= path.size(); ++length) {
    if (fits(problem, path, length)) found = static_cast<std::int32_t>(length);
  }
  return found;
}

// Adds a random placement to `path` if it is legal and contradicts none of those before it.
void go_on(const Problem& problem, oracle::Generator* chance, std::vector<Placement>* path) {
  const BufferIdx b = static_cast<BufferIdx>(chance->pick(0, problem.count() - 1));
  const Bytes offset = chance->pick(0, *problem.capacity);
  bool free = oracle::legal(problem, b, offset);
  for (const Placement& placed : *path) {
    free = free && placed.buffer != b &&
           !oracle::conflict(problem, b, offset, placed.buffer, placed.offset);
  }
  if (free) path->push_back({b, offset});
}

// A tight problem with any mix of constraints.
Problem tight(oracle::Generator* chance, int round) {
  Problem problem =
      chance->problem(chance->pick(1, 5), 5, 4, oracle::features(round % oracle::kFeatureSets));
  problem.capacity = std::max<Bytes>(1, oracle::least_peak(problem, 40)) + chance->pick(0, 1);
  return problem;
}

// Every second decision but the last can be gone back to, deepest first.
std::vector<BacktrackTarget> targets_of(const std::vector<Placement>& path) {
  std::vector<BacktrackTarget> targets;
  for (auto level = static_cast<std::int32_t>(path.size()) - 2; level >= 0; level -= 2) {
    targets.push_back({level, {}});
    targets.back().features[kLevelFeature] = static_cast<float>(level);
  }
  return targets;
}

TEST(the_oracle_knows_how_much_of_a_path_leads_to_a_solution) {
  oracle::Generator chance(11);
  int dead = 0;
  for (int round = 0; round < 400; ++round) {
    const Problem problem = tight(&chance, round);
    Stopper stopper = never();
    Oracle asked(problem, all(problem), *problem.capacity, kComplete, kNoLimit, stopper);
    std::vector<Placement> path;
    for (int question = 0; question < 12; ++question) {
      go_on(problem, &chance, &path);
      if (question % 4 == 3) path.resize(path.size() / 2);  // what it keeps of before must hold
      const std::optional<std::int32_t> expected = deepest(problem, path);
      CHECK(asked.deepest_solvable(path) == expected);
      dead += expected && *expected < static_cast<std::int32_t>(path.size());
    }
  }
  CHECK(dead > 200);
}

TEST(the_oracle_is_about_its_part_only) {
  Problem problem;
  problem.start = {0, 0, 10, 10};
  problem.end = {5, 5, 15, 15};
  problem.size = {4, 4, 6, 6};  // rows 2 and 3 do not fit
  problem.capacity = 10;
  Stopper stopper = never();
  CHECK(Oracle(problem, {0, 1}, 10, kComplete, kNoLimit, stopper).deepest_solvable({{1, 3}}) == 0);
  CHECK(Oracle(problem, {0, 1}, 10, kComplete, kNoLimit, stopper).deepest_solvable({{1, 4}}) == 1);
  CHECK(!Oracle(problem, {2, 3}, 10, kComplete, kNoLimit, stopper).deepest_solvable({{2, 0}}));
}

TEST(a_question_that_stays_open_gives_no_answer) {
  oracle::Generator chance(3);
  const Problem problem = tight(&chance, 0);
  Stopper over(0);
  CHECK(over.look());
  Oracle asked(problem, all(problem), *problem.capacity, kComplete, 0, over);
  CHECK(!asked.deepest_solvable({}));
}

TEST(collecting_goes_where_the_oracle_says_and_labels_what_it_saw) {
  oracle::Generator chance(5);
  int followed = 0;
  for (int round = 0; round < 300; ++round) {
    const Problem problem = tight(&chance, round);
    const std::vector<BufferIdx> part = all(problem);
    Stopper stopper = never();
    CollectOptions options;
    options.oracle = kComplete;
    options.oracle_nodes = kNoLimit;
    options.oracle_share = 1;
    CollectingPolicy policy(problem, options, stopper);
    std::vector<std::vector<Placement>> paths;
    std::vector<Placement> path;
    for (int step = 0; step < 10; ++step) {
      go_on(problem, &chance, &path);
      if (path.size() < 2) continue;
      const std::vector<BacktrackTarget> targets = targets_of(path);
      const int chosen = policy.choose({*problem.capacity, part, path, targets});
      const std::int32_t solvable = deepest(problem, path).value_or(-1);
      if (solvable < targets.back().level) {
        CHECK_EQ(chosen, BacktrackPolicy::kByRule);
      } else {
        CHECK(targets[chosen].level <= solvable);
        CHECK(chosen == 0 || targets[chosen - 1].level > solvable);
        ++followed;
      }
      if (solvable >= 0) paths.push_back(path);
    }
    std::vector<Placement> end(path.begin(), path.begin() + path.size() / 2);
    policy.solved(part, end);
    const BacktrackSamples samples = policy.take();
    CHECK_EQ(samples.length.size(), paths.size());
    std::size_t row = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      CHECK_EQ(samples.length[i], static_cast<std::int32_t>(paths[i].size()));
      CHECK_EQ(samples.solvable[i], deepest(problem, paths[i]).value_or(-1));
      CHECK_EQ(samples.shared[i], static_cast<std::int32_t>(std::min(paths[i].size(), end.size())));
      for (const BacktrackTarget& target : targets_of(paths[i])) {
        CHECK_EQ(samples.impasse[row], static_cast<std::int32_t>(i));
        CHECK_EQ(samples.level[row], target.level);
        CHECK_EQ(samples.features[row * kBacktrackFeatures + kLevelFeature],
                 static_cast<float>(target.level));
        ++row;
      }
    }
    CHECK_EQ(row, samples.level.size());
  }
  CHECK(followed > 100);
}

TEST(a_search_without_a_solution_teaches_nothing) {
  oracle::Generator chance(5);
  const Problem problem = tight(&chance, 0);
  Stopper stopper = never();
  CollectOptions options;
  options.oracle = kComplete;
  CollectingPolicy policy(problem, options, stopper);
  const std::vector<BufferIdx> part = all(problem);
  const std::vector<Placement> path = {{0, 0}, {1, 0}};
  const std::vector<BacktrackTarget> targets = targets_of(path);
  policy.choose({*problem.capacity, part, path, targets});
  CHECK(policy.take().length.empty());
}

// A forest of one leaf for each level: the score of a target depends on its level alone.
Forest by_level(const std::vector<double>& scores) {
  ForestColumns columns;
  columns.root = {0};
  for (std::size_t level = 0; level + 1 < scores.size(); ++level) {
    const auto i = static_cast<std::int32_t>(2 * level);
    columns.feature.insert(columns.feature.end(), {kLevelFeature, 0});
    columns.threshold.insert(columns.threshold.end(), {static_cast<float>(level), 0});
    columns.left.insert(columns.left.end(), {i + 1, i + 1});
    columns.right.insert(columns.right.end(), {i + 2, i + 1});
    columns.value.insert(columns.value.end(), {0, scores[level]});
  }
  const auto last = static_cast<std::int32_t>(columns.feature.size());
  columns.feature.push_back(0);
  columns.threshold.push_back(0);
  columns.left.push_back(last);
  columns.right.push_back(last);
  columns.value.push_back(scores.back());
  return Forest(columns);
}

int chosen_level(const BacktrackModel& model) {
  const std::vector<BufferIdx> part;
  const std::vector<Placement> path(8);
  const std::vector<BacktrackTarget> targets = targets_of(path);  // of levels 6, 4, 2, 0
  const int chosen = LearnedPolicy(model).choose({1, part, path, targets});
  return chosen < 0 ? chosen : targets[chosen].level;
}

TEST(the_highest_score_above_the_threshold_wins) {
  const std::vector<double> scores = {5, 9, 6, 9, 4, 9, 3, 9};  // only even levels are targets
  CHECK_EQ(chosen_level({by_level(scores), 0, 0}), 2);
  CHECK_EQ(chosen_level({by_level(scores), 5.9, 0}), 2);
  CHECK_EQ(chosen_level({by_level(scores), 6, 0}), BacktrackPolicy::kTryAll);
  CHECK_EQ(chosen_level({by_level({5}), 0, 0}), 6);  // of equals the deepest
}

TEST(going_far_back_is_discounted) {
  // At level 2 of 8, (3 of 8 placements stay) a score of 6 loses 5/8, at level 6 one of 3 an
  // eighth.
  const std::vector<double> scores = {5, 9, 6, 9, 4, 9, 3, 9};
  CHECK_EQ(chosen_level({by_level(scores), 0, 0.5}), 2);
  CHECK_EQ(chosen_level({by_level(scores), 0, 1}), 6);
}

TEST(a_model_that_is_none_is_refused) {
  const auto refused = [](const std::vector<double>& scores, std::int32_t feature,
                          double discount) {
    ForestColumns columns = {{feature, 0, 0}, {0, 0, 0}, {1, 1, 2}, {2, 1, 2}, {0, 1, 2}, {0}};
    columns.value[1] = scores[0];
    try {
      const BacktrackModel model(Forest(columns), 0, discount);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(!refused({1}, kBacktrackFeatures - 1, 1));
  CHECK(refused({1}, kBacktrackFeatures, 1));
  CHECK(refused({1}, 0, 1.5));
  CHECK(refused({1}, 0, std::numeric_limits<double>::quiet_NaN()));
}

TEST(a_search_with_a_model_keeps_every_constraint_and_repeats) {
  oracle::Generator chance(23);
  TelamallocOptions options;
  options.learned = "published";
  options.model = std::make_shared<BacktrackModel>(by_level({4, 9, 3, 2, 6}), 2.5, 0.5);
  int solved = 0;
  for (int round = 0; round < 600; ++round) {
    const int without_gaps = round % oracle::kFeatureSets & ~8;
    Problem problem = chance.problem(6, 6, 4, oracle::features(without_gaps));
    const Bytes least = oracle::least_peak(problem, 40);
    Stopper stopper = never();
    const Sections sections = sweep(problem);
    const auto search = [&](const TelamallocOptions& with, std::int64_t steps) {
      return telamalloc(problem, sections, least, with, steps, stopper);
    };
    const Plan plan = search(options, 10'000);
    CHECK(search(options, 10'000).offsets == plan.offsets);
    CHECK(plan.status != Status::kInfeasible || least >= 40);
    if (!plan.has_offsets()) continue;
    problem.capacity = least;
    CHECK(oracle::valid(problem, plan.offsets));
    ++solved;
  }
  CHECK(solved > 300);
}

TEST(how_to_learn_is_one_of_three) {
  const auto refused = [](const char* learned) {
    Problem problem;
    problem.start = {0};
    problem.end = {1};
    problem.size = {1};
    TelamallocOptions options;
    options.learned = learned;
    Stopper stopper = never();
    try {
      telamalloc(problem, sweep(problem), 1, options, 1, stopper);
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  CHECK(!refused("off"));
  CHECK(!refused("on"));
  CHECK(refused("published"));  // there is no model
  CHECK(refused("yes"));
}

TEST(features_have_names) {
  CHECK_EQ(backtrack_features().size(), std::size_t{kBacktrackFeatures});
}

}  // namespace

TEST_MAIN
