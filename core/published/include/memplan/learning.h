// Learned backtracking (TelaMalloc, section 6): the model that says where the search of telamalloc
// goes back to, and the samples that it is trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/forest.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "memplan/telamalloc.h"

namespace memplan {

// The names of the features of a target, in the order of their columns (section 6.4).
const std::vector<std::string>& backtrack_features();

// The model that decides at a major backtrack (section 6.5).
struct BacktrackModel {
  // Throws std::invalid_argument for a forest of other features, and for a discount that is not
  // from 0 to 1.
  BacktrackModel(Forest forest, double threshold, double discount);

  Forest forest;
  // Scores below it are taken for noise: all blocks that are unplaced are tried instead.
  double threshold;
  // How much of its score the outermost target loses, from 0 to 1, and those between in proportion:
  // going far back is more likely to leave what is solvable.
  double discount;
};

// The features at the major backtracks of a search, and how each path ended. All levels are those
// of one path: a target of level x takes back its placements from x on.
//
//    level   0 --- 1 --- 2 --- 3 --- 4 --- 5    the path at the backtrack, of length 6
//            shared      |     |                2 placements are in the solution that was found
//            solvable -------- |                3 placements are in some solution
struct BacktrackSamples {
  // One row per target.
  std::vector<float> features;  // row i: features[i * width .. (i + 1) * width)
  std::vector<std::int32_t> level;
  std::vector<std::int32_t> impasse;  // which of those below
  // One row per backtrack.
  std::vector<std::int32_t> length;
  std::vector<std::int32_t> solvable;
  std::vector<std::int32_t> shared;

  Plan plan;  // what the search ended with
};

// Whether there is a plan within a limit, from a search that is complete, as the exact search is.
using CompleteSearch = std::function<Plan(const Problem& problem, const Sections& sections,
                                          Bytes limit, std::int64_t nodes, Stopper& stopper)>;

struct CollectOptions {
  TelamallocOptions search;
  std::int64_t steps = 20'000;  // of the search
  CompleteSearch oracle;
  std::int64_t oracle_nodes = 2'000;  // of the oracle, for each question
  double oracle_share = 0.5;          // of backtracks that go where the oracle says
  std::uint64_t seed = 0;
  // Decides where the oracle is not followed; null stands for the regular rule.
  std::shared_ptr<const BacktrackModel> model;
};

// Searches once, with the oracle at every major backtrack (section 6.3). Throws
// std::invalid_argument where there is none.
BacktrackSamples collect_backtracks(const Problem& problem, const Sections& sections,
                                    Bytes capacity, const CollectOptions& options,
                                    Stopper& stopper);

}  // namespace memplan
