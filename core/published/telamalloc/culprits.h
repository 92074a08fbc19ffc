// The culprits of a dead end: the placements from which it follows.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/items.h"
#include "published/telamalloc/ranges.h"

namespace memplan {

// Walks the trail back from a dead end, from each change of a bound to what it was inferred from,
// until only placements are left. A bound is explained only as far as it was used: where a weaker
// bound was enough, that one is explained, by an earlier change or by none.
class Culprits {
 public:
  Culprits(const Items& items, const ValidRanges& ranges);

  // The levels at fault, ascending: their placements alone leave no solution.
  const std::vector<std::int32_t>& of_dead_end();
  // The levels because of which item i lies no higher than `bound`, and that of `other`.
  const std::vector<std::int32_t>& of_ceiling(ItemIdx i, Bytes bound, ItemIdx other);
  // The items of the last explanation: without the others, it is the same.
  const std::vector<ItemIdx>& involved() const { return involved_; }

 private:
  struct Need {
    std::int32_t change = -1;  // the first one that made the bound as good as that
    Bytes bound = 0;
  };

  void begin();
  const std::vector<std::int32_t>& walk();
  void explain(std::int32_t at, Bytes wanted);
  void need_above(ItemIdx above, ItemIdx below, Bytes lower);
  void need(std::int32_t cell, Bytes bound);
  void speak_of(ItemIdx i);

  const Items& items_;
  const ValidRanges& ranges_;
  std::vector<Need> needs_;                                     // by cell
  std::vector<std::pair<std::int32_t, std::int32_t>> pending_;  // a heap of (change, cell)
  std::int32_t end_ = 0;  // what is needed now was so before this change
  std::vector<std::int32_t> levels_;
  std::vector<ItemIdx> involved_;
  std::vector<char> is_involved_;
};

}  // namespace memplan
