// What both formulations of rectangle packing share: the data on the rectangles, and the answer.
#pragma once

#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "model/items.h"

namespace memplan {

enum class Outcome { kSolved, kExhausted, kCutShort };

struct Rectangles {
  explicit Rectangles(const Items& all) : items(all) {}

  // Null, or why the pairs could not be listed.
  const char* build(const Problem& problem, Stopper& stopper);

  const Items& items;
  std::vector<double> area;                      // size times lifetime; beyond 53 bits a tie
  std::vector<std::vector<ItemIdx>> neighbours;  // that share a time with an item
  std::vector<std::vector<ItemIdx>> in_section;  // largest size first
};

// The greatest step such that, if there is a plan, there is one with all offsets multiples of it.
//
// Take the plan of least sum of offsets. Whatever is not pinned rests on a floor, the end of a
// reserved range or of a buffer below it, rounded up to its alignment: the step divides sizes,
// pins and ends of reserved ranges, and with an alignment one divides the other.
Bytes grid_step(const Problem& problem, const Items& items);

// The plan of a search that ended so. `cut_short` says what ended it where the outcome is that.
Plan plan_of_outcome(Outcome outcome, const Problem& problem, const Items& items,
                     const std::vector<Bytes>& offsets, const std::string& cut_short);

}  // namespace memplan
