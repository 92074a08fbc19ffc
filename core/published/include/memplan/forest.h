// Regression trees in flat arrays: the score of a row of features is the sum over all trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan {

// Column i of the first five is node i of all trees together. At an inner node a row goes left if
// row[feature] <= threshold, else right. A leaf is a node that both ways lead back to, so that a
// row may take more steps than it needs; its value is the tree's part of the score.
//
//   roots 0, 3          0: feature 4 <= 0.25 ?        3: leaf
//                          /             \               +0.1
//                   1: leaf               2: leaf
//                      -1.5                  +2.0
struct ForestColumns {
  std::vector<std::int32_t> feature;
  std::vector<float> threshold;
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> right;
  std::vector<double> value;  // 0 at inner nodes
  std::vector<std::int32_t> root;
};

class Forest {
 public:
  // Throws std::invalid_argument, with one sentence, for columns that are not such trees. Children
  // must follow their parents, as in the picture, so that every walk ends.
  explicit Forest(const ForestColumns& columns);

  std::size_t trees() const { return trees_; }
  // A row must have at least so many features.
  std::size_t width() const { return width_; }

  // scores[i] = the sum over all trees for rows[i * width .. (i + 1) * width), added up in one
  // order, so that it is the same number on any machine.
  void score(const float* rows, std::size_t count, std::size_t width, double* scores) const;

 private:
  static constexpr std::size_t kAbreast = 8;

  struct Node {
    float threshold;
    std::int32_t feature;
    std::int32_t child[2];  // left, right
  };
  // Trees that are walked side by side, the last ones filled up with leaves of value 0.
  struct Block {
    std::int32_t root[kAbreast];
    std::int32_t steps;  // to their deepest leaf
  };

  double score(const float* row) const;

  std::vector<Node> nodes_;
  std::vector<double> value_;
  std::vector<Block> blocks_;
  std::size_t trees_ = 0;
  std::size_t width_ = 0;
};

}  // namespace memplan
