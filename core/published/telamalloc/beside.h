// The search of TelaMalloc, section 5, and one that restarts and learns, side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/telamalloc.h"
#include "model/items.h"
#include "published/telamalloc/adjacency.h"
#include "published/telamalloc/phases.h"
#include "published/telamalloc/restarts.h"
#include "published/telamalloc/search.h"

namespace memplan {

//   section 5    |------|   |---|   |---|      one search, which goes on where it was
//   restarts            |---|   |---|   | ...  as many steps
//                  alone      in turn
//
// What section 5 solves soon costs the same steps as without the other, which is not even made
// then. What it solves within half of the budget is not lost.
class Beside {
 public:
  using Verdict = TelamallocSearch::Verdict;

  // All must outlive it.
  Beside(const Problem& problem, const Items& items, const Adjacency& adjacent,
         const TelamallocOptions& options, Stopper& stopper);

  // As those of TelamallocSearch.
  const std::vector<Phases::Subproblem>& subproblems() const { return plain_.subproblems(); }
  bool settle() { return plain_.settle(); }
  std::vector<ItemIdx> refutation() { return plain_.refutation(); }
  Verdict run(const Phases::Subproblem& part, std::int64_t limit);
  Bytes offset(ItemIdx i) const { return plain_.offset(i); }
  std::int64_t steps() const { return plain_.steps() + restarts_steps(); }
  std::int64_t backtracks() const {
    return plain_.backtracks() + (restarts_ ? restarts_->backtracks() : 0);
  }
  std::int64_t major_backtracks() const {
    return plain_.major_backtracks() + (restarts_ ? restarts_->major_backtracks() : 0);
  }

 private:
  std::int64_t restarts_steps() const { return restarts_ ? restarts_->steps() : 0; }
  bool adopt(const Phases::Subproblem& part);

  const Problem& problem_;
  const Items& items_;
  const Adjacency& adjacent_;
  Stopper& stopper_;
  TelamallocSearch plain_;
  std::unique_ptr<Restarts> restarts_;  // made at the first subproblem that needs it
};

}  // namespace memplan
