// The search of telamalloc under a policy of the caller (memplan/policy.h).
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "memplan/policy.h"
#include "memplan/telamalloc.h"
#include "model/items.h"
#include "published/telamalloc/adjacency.h"
#include "published/telamalloc/culprits.h"
#include "published/telamalloc/phases.h"
#include "published/telamalloc/ranges.h"
#include "published/telamalloc/search.h"

namespace memplan {

// Every block is tried at most once at a point, so the search ends under any policy.
class PolicySearch {
 public:
  using Verdict = TelamallocSearch::Verdict;

  // `options` has a policy. All must outlive it.
  PolicySearch(const Problem& problem, const Items& items, const Adjacency& adjacent,
               const TelamallocOptions& options, Stopper& stopper);

  // These are as those of TelamallocSearch.
  const std::vector<Phases::Subproblem>& subproblems() const { return phases_.subproblems; }
  bool settle() { return ranges_.settle(); }
  std::vector<ItemIdx> refutation();
  Verdict run(const Phases::Subproblem& part, std::int64_t limit);
  Bytes offset(ItemIdx i) const { return ranges_.lower(i); }
  std::int64_t steps() const { return steps_; }
  std::int64_t backtracks() const { return minor_ + major_; }
  std::int64_t major_backtracks() const { return major_; }

 private:
  struct Point {
    std::vector<BufferIdx> failed;
    std::vector<std::int32_t> culprits;  // levels of the path, ascending
  };

  Verdict search(const Phases::Subproblem& part, std::int64_t limit);
  void list_candidates(const Phases::Subproblem& part);
  ItemIdx ask(Bytes* offset);
  const ValidRange& offered(const SearchPolicy::Choice& choice) const;
  std::int32_t ask_level();
  void advance(ItemIdx i, Bytes offset);
  bool go_back();
  void blame(const std::vector<std::int32_t>& levels);
  SearchState state() const;
  std::int32_t depth() const { return static_cast<std::int32_t>(path_.size()); }

  const Items& items_;
  SearchPolicy& policy_;
  Stopper& stopper_;
  const Phases phases_;
  ValidRanges ranges_;
  Culprits culprits_;
  std::vector<ItemIdx> item_of_;  // by buffer

  std::vector<Placement> path_;
  std::vector<Point> points_;  // by level; those beyond the path are spare
  std::vector<ValidRange> candidates_;
  std::vector<char> has_failed_;  // by item; 0 for all between calls
  std::vector<std::int32_t> merged_;
  std::int32_t base_ = 0;  // what earlier subproblems have placed
  std::int64_t steps_ = 0;
  std::int64_t minor_ = 0;
  std::int64_t major_ = 0;
};

}  // namespace memplan
