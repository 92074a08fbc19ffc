#include "memplan/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

namespace {

[[noreturn]] void refuse_node(std::size_t node, const char* what) {
  fail("node " + std::to_string(node) + " of the forest " + what);
}

void check_lengths(const ForestColumns& columns) {
  const std::size_t count = columns.feature.size();
  if (columns.threshold.size() != count || columns.left.size() != count ||
      columns.right.size() != count || columns.value.size() != count) {
    fail("the columns of the forest differ in length");
  }
  if (count > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail("the forest has too many nodes");
  }
}

void check_node(const ForestColumns& columns, std::size_t i) {
  const auto self = static_cast<std::int32_t>(i);
  const auto count = static_cast<std::int32_t>(columns.feature.size());
  const std::int32_t left = columns.left[i];
  const std::int32_t right = columns.right[i];
  const bool leaf = left == self && right == self;
  if (columns.feature[i] < 0) refuse_node(i, "has a negative feature");
  if (!std::isfinite(columns.value[i])) refuse_node(i, "has a value that is no number");
  if (leaf) return;
  if (left <= self || right <= self) refuse_node(i, "has a child that does not follow it");
  if (left >= count || right >= count) refuse_node(i, "has a child that is not there");
  if (std::isnan(columns.threshold[i])) refuse_node(i, "has a threshold that is no number");
}

}  // namespace

Forest::Forest(const ForestColumns& columns) {
  check_lengths(columns);
  const std::size_t count = columns.feature.size();
  std::vector<std::int32_t> steps(count, 0);
  for (std::size_t i = count; i-- > 0;) {
    check_node(columns, i);
    const std::int32_t left = columns.left[i];
    const std::int32_t right = columns.right[i];
    const bool leaf = left == static_cast<std::int32_t>(i);
    if (!leaf) {
      steps[i] = 1 + std::max(steps[left], steps[right]);
      width_ = std::max(width_, static_cast<std::size_t>(columns.feature[i]) + 1);
    }
    nodes_.push_back({columns.threshold[i], leaf ? 0 : columns.feature[i], {left, right}});
  }
  std::reverse(nodes_.begin(), nodes_.end());
  value_ = columns.value;
  trees_ = columns.root.size();

  const auto nothing = static_cast<std::int32_t>(count);
  nodes_.push_back({0, 0, {nothing, nothing}});
  value_.push_back(0);
  steps.push_back(0);
  for (std::size_t t = 0; t < trees_; ++t) {
    const std::int32_t root = columns.root[t];
    if (root < 0 || root >= nothing) fail("the forest lacks a root");
    if (t % kAbreast == 0) {
      blocks_.emplace_back();
      std::fill_n(blocks_.back().root, kAbreast, nothing);
    }
    blocks_.back().root[t % kAbreast] = root;
    blocks_.back().steps = std::max(blocks_.back().steps, steps[root]);
  }
}

void Forest::score(const float* rows, std::size_t count, std::size_t width, double* scores) const {
  if (width < width_) {
    fail("the forest asks for " + std::to_string(width_) + " features, and rows have " +
         std::to_string(width));
  }
  for (std::size_t row = 0; row < count; ++row) scores[row] = score(rows + row * width);
}

// Walks down several trees at once, as many steps as the deepest leaf is away, so that their loads
// do not wait for one another and no branch depends on a comparison.
double Forest::score(const float* row) const {
  double sum[kAbreast] = {};
  for (const Block& block : blocks_) {
    std::int32_t at[kAbreast];
    std::copy_n(block.root, kAbreast, at);
    for (std::int32_t step = 0; step < block.steps; ++step) {
      for (std::int32_t& node : at) {
        const bool right = !(row[nodes_[node].feature] <= nodes_[node].threshold);
        node = nodes_[node].child[right];
      }
    }
    for (const std::int32_t node : at) MEMPLAN_ASSERT(nodes_[node].child[0] == node);  // a leaf
    for (std::size_t k = 0; k < kAbreast; ++k) sum[k] += value_[at[k]];
  }
  return std::accumulate(sum, sum + kAbreast, 0.0);
}

}  // namespace memplan
