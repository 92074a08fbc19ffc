#include "published/telamalloc/learned.h"

#include <cstddef>

namespace memplan {

int LearnedPolicy::choose(const Impasse& now) {
  rows_.clear();
  for (const BacktrackTarget& target : now.targets) {
    rows_.insert(rows_.end(), target.features.begin(), target.features.end());
  }
  scores_.resize(now.targets.size());
  model_.forest.score(rows_.data(), scores_.size(), kBacktrackFeatures, scores_.data());

  int best = kTryAll;
  double highest = model_.threshold;
  for (std::size_t t = 0; t < scores_.size(); ++t) {
    const auto depth = static_cast<double>(now.targets[t].level + 1);
    const double share = 1 - depth / static_cast<double>(now.path.size());
    const double score = scores_[t] * (1 - model_.discount * share);
    if (score > highest) {
      highest = score;
      best = static_cast<int>(t);
    }
  }
  return best;
}

}  // namespace memplan
