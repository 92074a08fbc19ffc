// A policy that asks the oracle how far to go back, and records samples of that (source 001,
// section 6.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/learning.h"
#include "memplan/problem.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/learned.h"
#include "published/telamalloc/oracle.h"
#include "util/random.h"

namespace memplan {

class CollectingPolicy : public BacktrackPolicy {
 public:
  CollectingPolicy(const Problem& problem, const CollectOptions& options, Stopper& stopper);

  int choose(const Impasse& now) override;
  void solved(const std::vector<BufferIdx>& part, const std::vector<Placement>& path) override;

  // The samples of the subproblems that were solved, since the others do not show how the search
  // ends.
  BacktrackSamples take() { return std::move(samples_); }

 private:
  // One backtrack, before it is known how the search ends.
  struct Record {
    std::vector<Placement> path;
    std::vector<BacktrackTarget> targets;
    std::int32_t solvable;
  };

  int otherwise(const Impasse& now);
  void add(const Record& record, std::int32_t shared);

  const Problem& problem_;
  const CollectOptions& options_;
  Stopper& stopper_;
  std::unique_ptr<LearnedPolicy> learned_;
  Random random_;
  std::vector<BufferIdx> part_;  // that the oracle is about
  std::unique_ptr<Oracle> oracle_;
  std::vector<Record> records_;
  BacktrackSamples samples_;
};

}  // namespace memplan
