// Bounds on the offsets of items, given what is placed, and what pairs infer from them.
//
//   address                     Of two items that conflict, one lies below the other. As soon as
//      |   +---- upper ----+    the bounds leave one of the two orders, it moves them: y, which
//      |   :       y       :    does not fit below x any more, lies above it.
//      |   +---- lower ----+
//      |   +-------+            Once nothing changes, the lower bound of an unplaced item is its
//      |   |   x   |            lowest valid position: there it is free of all that is placed, and
//      +---+-------+----        of what must lie below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "model/items.h"
#include "published/telamalloc/adjacency.h"

namespace memplan {

class ValidRanges {
 public:
  static constexpr ItemIdx kPlaced = kNoItem;  // the cause of a change that is a decision

  // Bounds are cells: 2 * item is its lower bound, 2 * item + 1 its upper.
  static std::int32_t lower_cell(ItemIdx i) { return 2 * i; }
  static std::int32_t upper_cell(ItemIdx i) { return 2 * i + 1; }

  // One change of a bound, on the trail.
  struct Change {
    std::int32_t cell;
    std::int32_t before;  // the last change of the same cell, or -1
    ItemIdx because;      // the other of the pair, or kPlaced
    Bytes old;            // the bound until then
  };
  // Two items of which neither fits below the other.
  struct DeadEnd {
    ItemIdx i = kNoItem;
    ItemIdx j = kNoItem;
  };

  ValidRanges(const Items& items, const Adjacency& adjacent, Stopper& stopper);

  Bytes lower(ItemIdx i) const { return bound_[lower_cell(i)]; }
  Bytes upper(ItemIdx i) const { return bound_[upper_cell(i)]; }
  bool placed(ItemIdx i) const { return level_[i] >= 0; }
  std::int32_t level(ItemIdx i) const { return level_[i]; }
  std::int32_t levels() const { return static_cast<std::int32_t>(decisions_.size()); }
  ItemIdx item_at(std::int32_t level) const { return decisions_[level].item; }

  // Infers what holds before anything is placed. Returns false if there is no solution (see
  // dead_end).
  bool settle();
  // Places i at an offset within its bounds, as the next level, and infers until nothing changes.
  // Returns false if that leaves no solution, or if the stopper ended it; the level must be taken
  // back either way.
  bool place(ItemIdx i, Bytes offset);
  // Takes back the placements of this level and all above it.
  void take_back(std::int32_t level);

  // The highest of the placed items that conflict with i, or kNoItem.
  ItemIdx highest_below(ItemIdx i) const;

  // The dead end of the last call that returned false; it has no items if the stopper ended that
  // call.
  const DeadEnd& dead_end() const { return dead_end_; }
  const std::vector<Change>& trail() const { return trail_; }
  Bytes bound(std::int32_t cell) const { return bound_[cell]; }
  // The last change of a cell, or -1.
  std::int32_t last_change(std::int32_t cell) const { return last_change_[cell]; }
  // The first change of a level on the trail.
  std::int32_t first_change(std::int32_t level) const { return decisions_[level].trail; }

  // The trail leads back to where bounds began, each change makes a bound tighter, levels and what
  // is placed name each other, and the cheap tests are no stronger than what they stand for.
  bool check_invariants() const;
  // Whether no pair infers anything more.
  bool is_settled() const;

 private:
  // The state before a level, which is restored with it.
  struct Decision {
    ItemIdx item;
    std::int32_t trail;
    Bytes placed_top;
    Bytes highest_top;
    Bytes lowest_upper;
  };

  bool infer();
  bool revise_all(ItemIdx i);
  bool revise(ItemIdx i, ItemIdx j);
  bool nothing_in_reach(ItemIdx i) const;
  void raise(ItemIdx i, Bytes bound, ItemIdx because);
  void sink(ItemIdx i, Bytes bound, ItemIdx because);
  void set(std::int32_t cell, Bytes value, ItemIdx because);
  void wake(ItemIdx i);

  const Items& items_;
  const Adjacency& adjacent_;
  Stopper& stopper_;
  std::vector<Bytes> bound_;               // by cell
  std::vector<std::int32_t> last_change_;  // by cell
  std::vector<std::int32_t> level_;        // by item: where it was placed, or -1
  std::vector<Change> trail_;
  std::vector<Decision> decisions_;
  DeadEnd dead_end_;

  // Cheap tests that spare most visits to neighbours; all three only get weaker on the way down.
  Bytes placed_top_ = 0;    // nothing that is placed is higher
  Bytes highest_top_ = 0;   // no lower bound of an unplaced item, plus its size, is higher
  Bytes lowest_upper_ = 0;  // no upper bound of an unplaced item is lower

  std::vector<ItemIdx> awake_;  // a queue: items whose bounds have changed
  std::vector<char> is_awake_;
};

}  // namespace memplan
