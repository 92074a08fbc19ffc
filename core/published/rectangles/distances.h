// The least distances between offsets: all longest paths of a graph in which each known inequality
// is an arc, in one matrix (a simple temporal network: Dechter, Meiri and Pearl 1991).
//
//   floor --lower--> i       off_i >= lower
//   i ---(-upper)--> floor   off_i <= upper
//   i -----size_i----> j     i lies below j
//
// Paths over the floor would fill the matrix, and change with every bound. So they are left out of
// it: such a path is the two bounds, lower_j - upper_i.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "model/items.h"

namespace memplan {

class Distances {
 public:
  // A change: the path between two items rose, or a bound of one (from == to).
  struct Change {
    ItemIdx from;
    ItemIdx to;
  };

  // Null, or a clause on why there is no matrix.
  const char* build(const Items& items, Stopper& stopper);

  Bytes lower(ItemIdx i) const { return lower_[i]; }
  Bytes upper(ItemIdx i) const { return upper_[i]; }
  // The least that off_to - off_from can be.
  Bytes least(ItemIdx from, ItemIdx to) const {
    return std::max(path(from, to), lower_[to] - upper_[from]);
  }

  // Add off_to - off_from >= bytes (which is positive), off_i >= bytes and off_i <= bytes, with all
  // that follows. False if that contradicts what is known; then nothing has changed.
  bool add(ItemIdx from, ItemIdx to, Bytes bytes);
  bool raise(ItemIdx i, Bytes bytes);
  bool sink(ItemIdx i, Bytes bytes);

  // Changes in the order in which they were made.
  std::size_t mark() const { return trail_.size(); }
  Change change(std::size_t k) const;
  void undo(std::size_t mark);

  // Paths are closed under joining, and bounds under paths.
  bool check_invariants() const;

 private:
  static constexpr Bytes kNoPath = -kMaxBytes;

  struct Old {
    std::uint32_t place;  // in the matrix, and behind it in the bounds
    Bytes bytes;
  };

  std::size_t at(ItemIdx from, ItemIdx to) const {
    return static_cast<std::size_t>(from) * count_ + static_cast<std::size_t>(to);
  }
  Bytes path(ItemIdx from, ItemIdx to) const { return matrix_[at(from, to)]; }
  Bytes& cell(std::size_t place);
  void set(std::size_t place, Bytes bytes);

  std::size_t count_ = 0;
  std::vector<Bytes> matrix_;
  std::vector<Bytes> lower_;
  std::vector<Bytes> upper_;
  std::vector<Old> trail_;
  std::vector<ItemIdx> targets_;
};

}  // namespace memplan
