// The policy of a caller for the search of telamalloc: which block is placed next, where, and how
// far to go back (TelaMalloc, section 4: Telamon calls back into a search heuristic, which asks for
// valid ranges and for the reasons of failures). The search keeps the state: it propagates, finds
// who is at fault and takes placements back.
//
//   struct LargestFirst : memplan::SearchPolicy {
//     Choice choose(const memplan::SearchState& now) override { ... return {buffer}; }
//   };
//   memplan::PublishedOptions how;
//   how.telamalloc.policy = std::make_shared<LargestFirst>();
//   options.outside = memplan::published_solver("telamalloc", how);  // published.h
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/types.h"

namespace memplan {

// One decision: a buffer and the place it was given.
struct Placement {
  BufferIdx buffer = 0;
  Bytes offset = 0;

  bool operator==(const Placement& o) const { return buffer == o.buffer && offset == o.offset; }
};

// A buffer that is not placed yet, and its valid range in bytes: no offset outside leads to a
// solution from here. `lower` is free of all that is placed; offsets above it may be taken.
struct ValidRange {
  BufferIdx buffer = 0;
  Bytes lower = 0;
  Bytes upper = 0;
};

// A decision point of the search. Subproblems (stretches of time that no buffer crosses) are
// searched one after the other, and this speaks of one only; a buffer that overlaps no other is in
// none.
struct SearchState {
  Bytes capacity;                             // a search for the least peak asks for several
  const std::vector<Placement>& path;         // by level, outermost first
  const std::vector<ValidRange>& candidates;  // by buffer: not placed, and not tried here
  const std::vector<BufferIdx>& failed;       // tried here in vain, in this order
  // The reasons: levels of `path`, ascending, from whose placements these failures follow.
  const std::vector<std::int32_t>& culprits;
};

// Called by the thread that called solve(). What it throws comes out of solve() as it is. An answer
// that is not possible throws std::invalid_argument, with one sentence.
class SearchPolicy {
 public:
  static constexpr BufferIdx kNone = -1;
  static constexpr std::int32_t kByRule = -1;

  struct Choice {
    BufferIdx buffer = kNone;  // one of `candidates`; kNone gives this point up
    Bytes offset = kNoOffset;  // in its valid range, and legal for it; kNoOffset: the lowest
  };

  virtual ~SearchPolicy() = default;
  // Which block is placed next. Never asked without candidates.
  virtual Choice choose(const SearchState& now) = 0;
  // Where a major backtrack goes to: a level of `path`, and the placements from there on are taken
  // back. Asked when this point was given up or all has been tried, and something is placed.
  // kByRule: the last of the culprits, or one level where there is none (section 5.4).
  virtual std::int32_t go_back(const SearchState& now) {
    static_cast<void>(now);
    return kByRule;
  }
};

}  // namespace memplan
