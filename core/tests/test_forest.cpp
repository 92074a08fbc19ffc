// Tests of regression trees in flat arrays.
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "memplan/forest.h"

using namespace memplan;

namespace {

// The picture of forest.h.
ForestColumns two_trees() {
  return {{4, 0, 0, 0}, {0.25F, 0, 0, 0}, {1, 1, 2, 3}, {2, 1, 2, 3}, {0, -1.5, 2, 0.1}, {0, 3}};
}

// Adds a tree that is grown by splitting a random leaf again and again.
void grow(ForestColumns* columns, std::mt19937* chance, int splits, int features) {
  const auto add = [&] {
    const auto i = static_cast<std::int32_t>(columns->feature.size());
    columns->feature.push_back(0);
    columns->threshold.push_back(0);
    columns->left.push_back(i);
    columns->right.push_back(i);
    columns->value.push_back(static_cast<double>((*chance)() % 64) /
                             8);  // sums of eighths are exact
    return i;
  };
  std::vector<std::int32_t> leaves = {add()};
  columns->root.push_back(leaves[0]);
  for (int split = 0; split < splits; ++split) {
    const std::size_t chosen = (*chance)() % leaves.size();
    const std::int32_t node = leaves[chosen];
    columns->feature[node] = static_cast<std::int32_t>((*chance)() % features);
    columns->threshold[node] = static_cast<float>((*chance)() % 16);
    columns->value[node] = 0;
    columns->left[node] = leaves[chosen] = add();
    columns->right[node] = add();
    leaves.push_back(columns->right[node]);
  }
}

// The definition: down each tree by itself, until a leaf.
double walked(const ForestColumns& columns, const float* row) {
  double sum = 0;
  for (std::int32_t node : columns.root) {
    while (columns.left[node] != node) {
      const bool left = row[columns.feature[node]] <= columns.threshold[node];
      node = left ? columns.left[node] : columns.right[node];
    }
    sum += columns.value[node];
  }
  return sum;
}

bool refused(const ForestColumns& columns) {
  try {
    const Forest forest(columns);
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

TEST(the_trees_of_the_picture) {
  const Forest forest(two_trees());
  const std::vector<float> rows = {0, 0, 0, 0, 0.25F, 0, 0, 0, 0, 0.5F};
  std::vector<double> scores(2);
  forest.score(rows.data(), 2, 5, scores.data());
  CHECK_EQ(scores[0], -1.5 + 0.1);
  CHECK_EQ(scores[1], 2 + 0.1);
  CHECK_EQ(forest.trees(), 2U);
  CHECK_EQ(forest.width(), 5U);
}

TEST(scores_are_those_of_a_plain_walk) {
  std::mt19937 chance(7);
  for (int round = 0; round < 200; ++round) {
    ForestColumns columns;
    const int trees = static_cast<int>(chance() % 20);
    for (int t = 0; t < trees; ++t) grow(&columns, &chance, static_cast<int>(chance() % 40), 6);
    const Forest forest(columns);
    std::vector<float> rows(9 * 6);
    for (float& cell : rows)
      cell = static_cast<float>(chance() % 17) - 0.5F * static_cast<float>(chance() % 2);
    std::vector<double> scores(9, -1);
    forest.score(rows.data(), 9, 6, scores.data());
    for (int r = 0; r < 9; ++r) CHECK_EQ(scores[r], walked(columns, rows.data() + r * 6));
  }
}

TEST(a_forest_of_no_trees_says_nothing) {
  const Forest forest({});
  const float row = 1;
  double score = -1;
  forest.score(&row, 1, 1, &score);
  CHECK_EQ(score, 0.0);
  CHECK_EQ(forest.width(), 0U);
}

TEST(columns_that_are_no_trees_are_refused) {
  CHECK(!refused(two_trees()));
  const auto broken = [](auto change) {
    ForestColumns columns = two_trees();
    change(&columns);
    return refused(columns);
  };
  CHECK(broken([](ForestColumns* c) { c->left[0] = 0; }));   // round in a circle
  CHECK(broken([](ForestColumns* c) { c->right[2] = 1; }));  // a leaf on one side only
  CHECK(broken([](ForestColumns* c) { c->right[0] = 4; }));  // a child beyond the end
  CHECK(broken([](ForestColumns* c) { c->left[0] = -1; }));
  CHECK(broken([](ForestColumns* c) { c->feature[0] = -1; }));
  CHECK(broken([](ForestColumns* c) { c->root[1] = 4; }));
  CHECK(broken([](ForestColumns* c) { c->root[0] = -1; }));
  CHECK(broken([](ForestColumns* c) { c->value.pop_back(); }));
  CHECK(broken([](ForestColumns* c) { c->threshold[0] = std::nanf(""); }));
  CHECK(broken([](ForestColumns* c) { c->value[1] = std::numeric_limits<double>::infinity(); }));
}

TEST(rows_that_are_too_narrow_are_refused) {
  const Forest forest(two_trees());
  const std::vector<float> row(4);
  double score = 0;
  bool thrown = false;
  try {
    forest.score(row.data(), 1, 4, &score);
  } catch (const std::invalid_argument&) {
    thrown = true;
  }
  CHECK(thrown);
}

}  // namespace

TEST_MAIN
