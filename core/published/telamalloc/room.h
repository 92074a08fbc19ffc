// Whether sections have room for what is unplaced in them (MiniMalloc, equation 3).
#pragma once

#include <cstdint>
#include <vector>

#include "model/items.h"
#include "published/telamalloc/ranges.h"

namespace memplan {

//   address
//        C +-----------------+
//          |  what is        |   What is unplaced in a section lies above the lowest of its lower
//          |  unplaced       |   bounds, so all of it must fit between that and the capacity.
//    floor +- - - - - - - - -+
//          |##### placed ####|
//        0 +-----------------+
//
// One unplaced item that lies low enough shows that a section has room, and the same item mostly
// shows it the next time. So a look at a section seldom visits more than one item.
class Room {
 public:
  Room(const Items& items, const ValidRanges& ranges);

  // To be called when an item is placed, or taken back.
  void place(ItemIdx i) { add(i, -items_.size[i]); }
  void take_back(ItemIdx i) { add(i, items_.size[i]); }

  // The first section of item i without room for what is unplaced there, or -1.
  SectionIdx overfull(ItemIdx i);

  // The items that are live in a section.
  const ItemIdx* begin(SectionIdx s) const { return live_.data() + first_[s]; }
  const ItemIdx* end(SectionIdx s) const { return live_.data() + first_[s + 1]; }

  // The bytes of what is unplaced in each section are those of its unplaced items.
  bool check_invariants() const;

 private:
  void add(ItemIdx i, Bytes bytes);
  bool has_room(SectionIdx s);

  const Items& items_;
  const ValidRanges& ranges_;
  std::vector<std::int32_t> first_;  // section s has live_[first_[s] .. first_[s + 1])
  std::vector<ItemIdx> live_;
  std::vector<Bytes> unplaced_;  // by section
  std::vector<ItemIdx> low_;     // by section: the item that was low enough the last time
};

}  // namespace memplan
