// The abstract problem that the exact search solves (docs/algorithms/exact.md, "The problem of a
// node"): items with an inclusive span of sections, a size and a floor on their own offset; a
// ceiling above all.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/sections.h"
#include "memplan/types.h"
#include "model/items.h"

namespace memplan::exact {

template <typename V>
struct Item {
  V floor;  // lower bound on the item's own offset
  V size;
  std::int32_t first;  // span of sections, inclusive
  std::int32_t last;
  std::int32_t id;
};

// One component: the items between two times that none crosses, or more where listed conflicts link
// what is apart in time. The exact search itself handles neither conflicts nor groups.
//
// Unrestricted, every value is in units of the common divisor of all sizes, and any offset is as
// good as any other. Restricted (pins, reserved ranges, mixed alignments) values are bytes, and
// the legal offsets of an item are what `world` says.
struct Task {
  std::vector<Item<Bytes>>
      items;  // items[i].id == i; their order does not depend on the order of rows
  std::vector<ItemIdx> source;  // by id
  SectionIdx sections = 0;
  Bytes ceiling = 0;
  Bytes unit = 1;  // bytes per unit
  const Items* world = nullptr;
  bool restricted = false;
};

// The components of the problem, tightest first. `world` must outlive them.
std::vector<Task> make_tasks(const Items& world);

// The same task with time running backwards: same offsets.
Task reversed(const Task& task);

// Checks what the comment on Task says.
bool check_invariants(const Task& task);

}  // namespace memplan::exact
