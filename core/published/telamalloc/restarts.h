// A search that restarts, and learns from its dead ends which blocks are hard to place. It runs
// beside that of section 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "model/items.h"
#include "published/telamalloc/adjacency.h"
#include "published/telamalloc/culprits.h"
#include "published/telamalloc/phases.h"
#include "published/telamalloc/ranges.h"
#include "published/telamalloc/room.h"
#include "published/telamalloc/unplaced.h"
#include "util/random.h"

namespace memplan {

class Restarts {
 public:
  // How a restart chooses the next block.
  enum class Style {
    kLists,   // mostly the heaviest of all, then as TelaMalloc does (section 5.1)
    kLowest,  // the heaviest of those that can lie lowest, as long as sections have room
  };

  // All must outlive it.
  Restarts(const Problem& problem, const Items& items, const Adjacency& adjacent,
           const Phases& phases, Stopper& stopper);

  // Begins a subproblem. What was placed before is taken back.
  void begin(const Phases::Subproblem& part);
  // Goes on until there have been `limit` steps in all. Returns true if everything is placed.
  bool run(std::int64_t limit);

  Bytes offset(ItemIdx i) const { return ranges_.lower(i); }
  std::int64_t steps() const { return steps_; }
  std::int64_t backtracks() const { return minor_ + major_; }
  std::int64_t major_backtracks() const { return major_; }

  bool check_invariants() const;

 private:
  struct Point {
    std::vector<ItemIdx> candidates;  // the first `tried` have been tried
    std::size_t tried = 0;
    std::vector<std::int32_t> culprits;  // levels that what failed here follows from, ascending
  };

  void restart();
  void open();
  void list_heaviest();
  void list_as_published();
  void list_lowest();
  ItemIdx next();
  void advance(ItemIdx i);
  bool go_back();
  void hoist(const Point& failed, Point* above);
  void retreat_to(std::int32_t level);
  void blame(const std::vector<std::int32_t>& levels);
  void blame_pair();
  void blame_section(SectionIdx s);
  void weigh(ItemIdx i, double share);
  bool heavier(ItemIdx a, ItemIdx b) const;

  const Phases& phases_;
  Stopper& stopper_;
  ValidRanges ranges_;
  Culprits culprits_;
  Unplaced unplaced_;
  Room room_;

  std::vector<double>
      weight_;  // by item: how often it was in a dead end, the last ones counting most
  std::vector<double> area_;  // by item
  double bump_ = 1;           // what the next dead end adds

  const Phases::Subproblem* part_ = nullptr;
  std::int64_t restarts_ = 0;
  std::int64_t end_ = 0;  // the steps at which this restart ends
  Style style_ = Style::kLists;
  Random random_{0};
  std::vector<Point> points_;  // by level; those above depth_ are spare
  std::int32_t depth_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t minor_ = 0;
  std::int64_t major_ = 0;
  std::vector<std::int32_t> levels_;
  std::vector<std::int32_t> merged_;
  std::vector<ItemIdx> waiting_;
};

}  // namespace memplan
