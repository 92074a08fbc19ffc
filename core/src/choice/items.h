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

// The most bytes that chosen items can hold at each moment of each memory: the greatest sum of
// sizes of open items that fits beside those which are in. With more items decided, it is never
// more. Empty if those which are in do not fit.
Table<Bytes> find_reachable(const Items& items, const std::vector<Fixed>& fixed);

}  // namespace memplan::choice
