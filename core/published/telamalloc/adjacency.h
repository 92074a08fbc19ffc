// Which items may not overlap which, as compressed rows.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "model/items.h"

namespace memplan {

// Item i conflicts with other[begin[i]] .. other[begin[i + 1] - 1], each once.
struct Adjacency {
  std::vector<std::int64_t> begin;
  std::vector<ItemIdx> other;

  const ItemIdx* first(ItemIdx i) const { return other.data() + begin[i]; }
  const ItemIdx* last(ItemIdx i) const { return other.data() + begin[i + 1]; }
  bool alone(ItemIdx i) const { return begin[i] == begin[i + 1]; }

  // Null, or a clause on why they could not be listed.
  const char* build(const Items& items, Stopper& stopper);

  // Rows are sorted, and the relation is symmetric.
  bool check_invariants() const;
};

}  // namespace memplan
