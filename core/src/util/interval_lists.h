// Many short lists of disjoint address intervals, in one block of memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/types.h"
#include "util/fetch.h"
#include "util/invariants.h"

namespace memplan {

struct Interval {
  Bytes lower = 0;
  Bytes upper = 0;
};

// Each list is sorted, and intervals that touch or overlap are one. A list lives in a block of
// the pool whose length is a power of two and moves to one of twice the length when it is full;
// the blocks left behind are used again. A pass over a million buffers fills millions of lists,
// most of one or two intervals: as vectors, they would cost more than all the rest.
class IntervalLists {
 public:
  explicit IntervalLists(std::size_t count) : lists_(count) {}

  bool empty(std::size_t list) const { return lists_[list].size == 0; }
  const Interval* begin(std::size_t list) const { return pool_.data() + lists_[list].begin; }
  const Interval* end(std::size_t list) const { return begin(list) + lists_[list].size; }

  // Brings where a list lies, and then its first intervals, into the cache.
  void fetch_place(std::size_t list) const { fetch(&lists_[list]); }
  void fetch_intervals(std::size_t list) const { fetch(pool_.data() + lists_[list].begin); }

  // Adds an interval. False where the list covered it already.
  bool add(std::size_t list, Interval added) {
    MEMPLAN_ASSERT(added.lower < added.upper);
    List& l = lists_[list];
    Interval* const first = pool_.data() + l.begin;
    Interval* const last = first + l.size;
    // Most are added near the top.
    Interval* from = last;
    for (int looks = 0; from > first && from[-1].upper >= added.lower; ++looks) {
      --from;
      if (looks < kLooks) continue;
      from = std::lower_bound(first, from, added.lower,
                              [](const Interval& i, Bytes lower) { return i.upper < lower; });
      break;
    }
    if (from == last || from->lower > added.upper) {
      insert(list, static_cast<std::size_t>(from - first), added);
      return true;
    }
    if (from->lower <= added.lower && added.upper <= from->upper) return false;
    Interval* to = from + 1;  // one beyond the last interval that `added` joins
    while (to != last && to->lower <= added.upper) ++to;
    *from = {std::min(from->lower, added.lower), std::max((to - 1)->upper, added.upper)};
    std::move(to, last, from + 1);
    l.size -= static_cast<std::uint32_t>(to - from - 1);
    MEMPLAN_ASSERT(is_apart(list, static_cast<std::size_t>(from - first)));
    return true;
  }

  // Empties every list and keeps the memory for the next pass.
  void clear() {
    std::fill(lists_.begin(), lists_.end(), List{});
    pool_.clear();
    for (auto& blocks : free_) blocks.clear();
  }

  // Every list is sorted, and the blocks in use and the free ones fill the pool.
  bool check_invariants() const {
    std::size_t room = 0;
    for (std::size_t list = 0; list < lists_.size(); ++list) {
      const List& l = lists_[list];
      MEMPLAN_ASSERT(l.level < 0 ? l.size == 0 : l.size <= std::uint32_t{1} << l.level);
      if (l.level >= 0) room += std::size_t{1} << l.level;
      for (std::size_t at = 0; at < l.size; ++at) MEMPLAN_ASSERT(is_apart(list, at));
    }
    for (std::size_t level = 0; level < free_.size(); ++level) {
      room += free_[level].size() << level;
    }
    MEMPLAN_ASSERT(room == pool_.size());
    return true;
  }
  // Whether a list covers all of an interval.
  bool covers(std::size_t list, const Interval& asked) const {
    return std::any_of(begin(list), end(list), [&asked](const Interval& i) {
      return i.lower <= asked.lower && asked.upper <= i.upper;
    });
  }

 private:
  static constexpr int kLooks = 4;  // before a binary search

  struct List {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
    std::int32_t level = -1;  // the block holds 2^level intervals; -1: no block yet
  };

  void insert(std::size_t list, std::size_t at, Interval added) {
    List& l = lists_[list];
    if (l.level < 0 || l.size == (std::uint32_t{1} << l.level)) grow(l);
    Interval* const first = pool_.data() + l.begin;
    std::move_backward(first + at, first + l.size, first + l.size + 1);
    first[at] = added;
    ++l.size;
    MEMPLAN_ASSERT(is_apart(list, at));
  }

  // Whether the interval `at` touches neither the one before it nor the one behind.
  bool is_apart(std::size_t list, std::size_t at) const {
    const Interval* const here = begin(list) + at;
    return here->lower < here->upper && (at == 0 || here[-1].upper < here->lower) &&
           (here + 1 == end(list) || here->upper < here[1].lower);
  }
  void grow(List& l) {
    auto& blocks = free_[l.level + 1];
    std::uint32_t begin = static_cast<std::uint32_t>(pool_.size());
    if (blocks.empty()) {
      pool_.resize(pool_.size() + (std::size_t{1} << (l.level + 1)));
    } else {
      begin = blocks.back();
      blocks.pop_back();
    }
    std::copy_n(pool_.begin() + l.begin, l.size, pool_.begin() + begin);
    if (l.level >= 0) free_[l.level].push_back(l.begin);
    l.begin = begin;
    ++l.level;
    MEMPLAN_ASSERT(l.begin + (std::size_t{1} << l.level) <= pool_.size());
  }

  std::vector<List> lists_;
  std::vector<Interval> pool_;
  std::array<std::vector<std::uint32_t>, 33> free_;  // blocks not in use, by level
};

}  // namespace memplan
