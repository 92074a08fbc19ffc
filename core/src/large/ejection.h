// Repair that depends neither on sections nor on an order: what has no place displaces others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "model/blocks.h"
#include "util/random.h"
#include "util/ranked.h"

namespace memplan::chain {

//   address                     x finds no place below the target. It is put where that throws out
//     |  +--+ +--b--+ +----+    least (b, c), which then look for places in their turn. A block
//     |  |  | +.....+ |    |    that could not be placed by itself counts for more each time it
//     |  |a | :  x  : | d  |    happens, so that it is thrown out less: the search learns which
//     |  |  | +.....+ |    |    are hard to place, and does not run in a cycle.
//     |  +--+ +--c--+ +----+
//
// This is the guided ejection search that Nagata and Braysy made for routing vehicles (2009).
class Ejection {
 public:
  // All must outlive it.
  Ejection(const Problem& problem, const Sections& sections, std::uint64_t seed, Stopper& stopper);

  // `offsets` is a plan below `target` but for the `rejected`, which have kNoOffset with all of
  // their groups, and of which none is pinned. Returns true if all of them found places; otherwise
  // `offsets` must not be used any more. It spends at most `node_budget`, which nodes() counts.
  bool insert(Bytes target, std::int64_t node_budget, std::vector<Bytes>* offsets,
              const std::vector<BufferIdx>& rejected);

  std::int64_t nodes() const { return nodes_; }

  // Every placed buffer is in the stripes where it lives, once, and a group is placed whole or not
  // at all.
  bool check_invariants() const;

 private:
  struct Placed {
    Bytes offset;
    Bytes size;
    SectionIdx first;  // of its lifetime, gaps and all
    SectionIdx last;
    BufferIdx buffer;
  };

  // Offsets between `lower` and `upper`, both excluded, throw out `buffer`.
  struct Bar {
    Bytes lower;
    Bytes upper;
    BufferIdx buffer;  // kFixed: a pin or a reserved range
  };

  void cut_time(const Sections& sections);
  void lay_out(const std::vector<Bytes>& offsets);
  void place(BufferIdx b, Bytes offset);
  void remove(BufferIdx b);
  void bar_with(BufferIdx b);
  void rank_bars(Bytes Bar::* key);
  void sort_bars();
  void bar_with_member(BufferIdx member, Bytes shift);
  Bytes free_place(const Shape& shape, Bytes top) const;
  Bytes cheapest_place(const Shape& shape, Bytes top);
  void eject(Bytes offset, std::vector<BufferIdx>* unplaced);
  std::int64_t weight(const Bar& bar) const;
  std::size_t stripe_of(SectionIdx s) const { return static_cast<std::size_t>(s / stripe_); }

  // A buffer that lives in no section is in the first stripe.
  std::size_t first_stripe(const Placed& row) const {
    return stripe_of(std::min(row.first, row.last));
  }

  template <typename Visit>
  void for_stripes(const Placed& row, const Visit& visit) {
    for (std::size_t s = first_stripe(row); s <= stripe_of(row.last); ++s) visit(&stripes_[s]);
  }

  static bool below(const Placed& x, const Placed& y);

  const Problem& problem_;
  Random random_;
  Stopper& stopper_;
  Blocks blocks_;
  std::vector<Placed> at_;  // by buffer; kNoOffset where not placed
  // The stripes of time, each of so many sections: what is placed and lives in it, by address.
  std::vector<std::vector<Placed>> stripes_;
  SectionIdx stripe_ = 1;
  std::vector<std::int64_t> failures_;  // by buffer, alike in all of a group
  std::vector<char> marked_;            // by buffer: explicit neighbours of the one at work
  std::vector<char> stays_;             // by buffer: it, or one of its group, is pinned
  std::vector<Bar> bars_;               // of the block at work, by `lower`
  std::vector<Bar> sorted_;
  std::vector<Ranked> ranks_;  // of bars
  Bytes unit_ = 1;             // of size, in weights
  std::int64_t nodes_ = 0;
};

}  // namespace memplan::chain
