// The search tree of TelaMalloc, section 5. It has a stack of its own, since it is as deep as there
// are buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "memplan/telamalloc.h"
#include "model/items.h"
#include "published/telamalloc/adjacency.h"
#include "published/telamalloc/backtracking.h"
#include "published/telamalloc/candidates.h"
#include "published/telamalloc/culprits.h"
#include "published/telamalloc/phases.h"
#include "published/telamalloc/ranges.h"
#include "published/telamalloc/unplaced.h"

namespace memplan {

class TelamallocSearch {
 public:
  enum class Verdict { kSolved, kExhausted, kCutShort };

  // All must outlive it; `policy` may be null.
  TelamallocSearch(const Problem& problem, const Items& items, const Adjacency& adjacent,
                   const TelamallocOptions& options, BacktrackPolicy* policy, Stopper& stopper);

  const Phases& phases() const { return phases_; }
  const std::vector<Phases::Subproblem>& subproblems() const { return phases_.subproblems; }

  // Infers what holds before anything is placed. Returns false if there is no solution (see
  // refutation()), or if the stopper ended it.
  bool settle() { return ranges_.settle(); }
  std::vector<ItemIdx> refutation();

  // Solves one subproblem until there have been `limit` steps in all. To be called in the order of
  // subproblems(); what it places stays placed if it solves it, and only then.
  Verdict run(const Phases::Subproblem& part, std::int64_t limit);
  // The same in pieces: what was cut short goes on where it was, if there may be more steps.
  void begin(const Phases::Subproblem& part);
  Verdict go_on(const Phases::Subproblem& part, std::int64_t limit);
  // Gives up what the pieces have placed.
  void give_up();
  // Ends a subproblem with the places that another search found, by item. Returns false if the
  // stopper ended it.
  bool adopt(const Phases::Subproblem& part, const std::vector<Bytes>& offsets);

  Bytes offset(ItemIdx i) const { return ranges_.lower(i); }
  std::int64_t steps() const { return steps_; }
  std::int64_t backtracks() const { return minor_ + major_; }
  std::int64_t major_backtracks() const { return major_; }

  // Placed items are not in the lists of the unplaced, and levels, points and culprits are in
  // order.
  bool check_invariants() const;

 private:
  void tell_policy(const Phases::Subproblem& part);
  void open();
  void advance(ItemIdx i);
  bool fits_on_skyline(ItemIdx i, Bytes* offset);
  void blame(const std::vector<std::int32_t>& levels);

  bool go_back();
  std::int32_t level_by_rule();
  bool is_stuck(std::int32_t level) const;
  std::int32_t leave_stuck_subtree(std::int32_t level);
  void leave_if_stuck();
  void retreat_to(std::int32_t level);
  int ask_policy();
  void add_target(std::int32_t level);

  ItemIdx item_at(std::int32_t level) const { return ranges_.item_at(base_ + level); }

  const Problem& problem_;
  const Items& items_;
  TelamallocOptions options_;
  BacktrackPolicy* policy_;
  Stopper& stopper_;
  const Phases phases_;
  ValidRanges ranges_;
  Culprits culprits_;
  Unplaced unplaced_;
  Candidates candidates_;

  std::vector<DecisionPoint> points_;  // by level; those above depth_ are spare
  std::int32_t depth_ = 0;             // the level of the point at hand
  std::int32_t base_ = 0;              // what earlier subproblems have placed
  std::int64_t steps_ = 0;
  std::int64_t minor_ = 0;
  std::int64_t major_ = 0;
  std::int64_t escapes_ = 0;  // from stuck subtrees
  std::vector<std::int32_t> merged_;
  std::vector<std::int32_t> culprit_levels_;

  // For the policy.
  std::vector<BufferIdx> part_;
  double part_length_ = 0;
  std::vector<Placement> path_;
  std::vector<BacktrackTarget> targets_;
  std::vector<std::int32_t> times_culprit_;  // by item: of major backtracks
};

}  // namespace memplan
