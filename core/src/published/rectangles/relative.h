// Relative placements: the search decides for one pair of buffers after another which of them lies
// below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/rectangles.h"
#include "published/rectangles/distances.h"
#include "published/rectangles/geometry.h"

namespace memplan {

class RelativeSearch {
 public:
  RelativeSearch(const Rectangles& rectangles, const MetaCspOptions& options, Distances& distances,
                 Stopper& stopper);

  // Null, or why the pairs could not be listed.
  const char* build();

  // Once solved, the lower bounds of the distances are a plan: they are legal, each having been
  // rounded, and every pair is in order, so that they are a size apart.
  Outcome run(std::int64_t node_budget);

  std::int64_t nodes() const { return nodes_; }

 private:
  using PairIdx = std::int32_t;

  struct Decision {
    PairIdx pair;
    bool first_below;  // the value: which of the pair lies below
    bool last;         // no other value is left
    std::size_t next;
    std::size_t changes;
    std::size_t given;
  };

  void list_pairs_of(ItemIdx i, const std::vector<std::int32_t>& rank);
  bool start();
  bool decide(PairIdx pair);
  bool go_back();
  bool try_value(const Decision& decision);
  bool assign(PairIdx pair, bool first_below);
  bool late();
  bool propagate();
  bool round(ItemIdx i);
  bool narrow(PairIdx pair);
  bool pile_below(ItemIdx i);
  bool pile_above(ItemIdx i);
  PairIdx next_pair();

  Bytes size(ItemIdx i) const { return items_.size[i]; }
  bool lies_below(ItemIdx i, ItemIdx j) const { return distances_.least(i, j) >= size(i); }
  bool may_lie_below(ItemIdx i, ItemIdx j) const { return distances_.least(j, i) <= -size(i); }
  bool ordered(PairIdx pair) const;
  PairIdx pair_of(ItemIdx i, ItemIdx j) const { return pair_of_[i * items_.size.size() + j]; }
  bool top_and_bottom_are_alike() const;

  const Rectangles& rectangles_;
  const Items& items_;
  const MetaCspOptions options_;
  Distances& distances_;
  Stopper& stopper_;
  std::vector<std::pair<ItemIdx, ItemIdx>> pairs_;  // in the order of trial
  std::vector<PairIdx> pair_of_;                    // by items, or -1
  std::size_t next_ = 0;                            // pairs before it are in order
  std::vector<char> is_given_;                      // by pair: it has a value
  std::vector<PairIdx> given_;                      // in this order
  std::vector<Decision> decisions_;
  std::size_t seen_ = 0;  // changes of distances before it have been followed up
  std::int64_t nodes_ = 0;
  std::int64_t nodes_end_ = 0;
  bool cut_short_ = false;
};

}  // namespace memplan
