// Samples of how far to go back (TelaMalloc, section 6.3): an oracle finds by a complete search
// which part of a path leads to a solution, and a policy asks it and records its answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/learning.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/learned.h"
#include "util/random.h"

namespace memplan {

// Answers for one subproblem.
class Oracle {
 public:
  // Every question may take `nodes` of `complete`, which must outlive it.
  Oracle(const Problem& problem, const std::vector<BufferIdx>& part, Bytes capacity,
         const CompleteSearch& complete, std::int64_t nodes, Stopper& stopper);

  // How many placements of the path, from its first, some solution has as well; none where a
  // question stays open, or too many have, or where no solution is known at all.
  std::optional<std::int32_t> deepest_solvable(const std::vector<Placement>& path);

 private:
  enum class Answer { kSolvable, kDead, kOpen };

  Answer ask(std::int32_t length);
  void keep_what_holds(const std::vector<Placement>& path);

  std::vector<BufferIdx> part_;  // sorted
  Problem problem_;              // of the part
  std::vector<Bytes> pins_;      // those that the problem has itself
  Sections sections_;
  Bytes capacity_;
  const CompleteSearch& complete_;
  std::int64_t nodes_;
  Stopper& stopper_;

  // The path of the last question. Of two paths that begin alike, what is known of the beginning of
  // one holds for the other: so every decision point costs one question while it is on the path.
  std::vector<Placement> path_;
  std::int32_t solvable_ = 0;  // the longest beginning that is known to lead to a solution
  std::int32_t dead_ = kNone;  // the shortest that is known to lead to none
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

  // Where many questions stayed open, later ones would too, and each costs all of its nodes.
  static constexpr int kPatience = 50;
  int open_ = 0;
};

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
