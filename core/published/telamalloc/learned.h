// A model that says where to go back to (TelaMalloc, section 6.5).
#pragma once

#include <vector>

#include "memplan/learning.h"
#include "published/telamalloc/backtracking.h"

namespace memplan {

class LearnedPolicy : public BacktrackPolicy {
 public:
  explicit LearnedPolicy(const BacktrackModel& model) : model_(model) {}

  // The target of the highest score, or kTryAll where none is high enough.
  int choose(const Impasse& now) override;

 private:
  const BacktrackModel& model_;
  std::vector<float> rows_;
  std::vector<double> scores_;
};

}  // namespace memplan
