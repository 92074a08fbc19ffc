// Items with times that are numbered, and numbers that are large enough for prices.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/choice.h"

namespace memplan::choice {

using Index = std::int32_t;

constexpr std::size_t kMostMemories = 16;

// Times are numbered from 0: the moments at which an item begins or ends. Moment t lasts until t
// + 1.
struct Items {
  std::vector<Index> start;
  std::vector<Index> end;
  std::vector<Bytes> bytes;
  std::vector<std::int64_t> worth;  // scaled by 2^shift
  std::vector<Index> memory;
  std::vector<Index> unit;
  std::vector<std::vector<Index>> of_unit;  // its items by start, and then by number
  std::vector<std::uint8_t> must;           // by unit
  std::vector<Bytes> capacity;              // by memory
  std::int32_t shift = 0;
  std::int64_t grain = 1;  // divides what any choice is worth; not scaled
  Index moments = 0;
  std::vector<Time> times;  // by moment, and the end of the last one

  Index size() const { return static_cast<Index>(bytes.size()); }
  Index memories() const { return static_cast<Index>(capacity.size()); }
  Index units() const { return static_cast<Index>(of_unit.size()); }
  bool meet(Index a, Index b) const { return start[a] < end[b] && start[b] < end[a]; }
};

Items make_items(const ChoiceProblem& problem);

// What is decided about an item.
enum class Fixed : std::uint8_t { kOpen, kIn, kOut };

// By memory and moment.
template <typename Value>
using Table = std::vector<std::vector<Value>>;

// What chosen items can hold at each moment of each memory: the greatest sums of sizes of open
// items that fit beside those which are in. With more items decided, they are never more.
//
// Of items above half the capacity, at most one is there. So for sizes w of the others, `small` is
// the most that they hold without such an item, and beside a large item j it is s_j. Then
//
//     sum of w of small items + (small - s_j) if the large item j is there <= small
//
// which is sharper than the capacity: a part of a large item leaves no more room than it needs.
struct Reach {
  Table<Bytes> most;
  Table<Bytes> small;
  // By large item that is open, from its start on: s_j at each moment; empty for other items.
  std::vector<std::vector<Bytes>> beside;
};

// Returns whether what is in fits.
bool find_reach(const Items& items, const std::vector<Fixed>& fixed, Reach& reach);

}  // namespace memplan::choice
