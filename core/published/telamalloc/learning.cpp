#include "memplan/learning.h"

#include <utility>

#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/collecting.h"
#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

const std::vector<std::string>& backtrack_features() {
  static const std::vector<std::string> names = {"size",         "lifetime",   "contention",
                                                 "level",        "culprit",    "returns",
                                                 "tree_returns", "same_phase", "backtracks"};
  return names;
}

BacktrackModel::BacktrackModel(Forest forest_, double threshold_, double discount_)
    : forest(std::move(forest_)), threshold(threshold_), discount(discount_) {
  if (forest.width() > kBacktrackFeatures) {
    fail("the forest asks for more features than a target has");
  }
  if (!(discount >= 0 && discount <= 1)) {
    fail("the discount is not between 0 and 1");
  }
}

BacktrackSamples collect_backtracks(const Problem& problem, const Sections& sections,
                                    Bytes capacity, const CollectOptions& options,
                                    Stopper& stopper) {
  if (!options.oracle) fail("samples need an oracle");
  CollectingPolicy policy(problem, options, stopper);
  Plan plan =
      telamalloc(problem, sections, capacity, options.search, options.steps, stopper, &policy);
  BacktrackSamples samples = policy.take();
  MEMPLAN_ASSERT(samples.features.size() == samples.level.size() * kBacktrackFeatures);
  MEMPLAN_ASSERT(samples.level.size() == samples.impasse.size() &&
                 samples.length.size() == samples.solvable.size() &&
                 samples.length.size() == samples.shared.size());
  samples.plan = std::move(plan);
  return samples;
}

}  // namespace memplan
