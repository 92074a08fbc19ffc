// Absolute placements: one buffer after another at one offset after another.
//
//   C +--------------------+    A section's free runs, here of 2 and 1. In all, the three cells
//     |    |######|        |    would hold buffers of 1 and 2; and for buffers of 3, none of them
//     |    |######|        |    counts.
//     |    |      |        |
//   0 +--------------------+
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/rectangles.h"
#include "published/rectangles/geometry.h"

namespace memplan {

class AbsoluteSearch {
 public:
  // Tries offsets in steps of `step` from each other: see grid_step.
  AbsoluteSearch(const Rectangles& rectangles, const CspOptions& options, Bytes step,
                 Stopper& stopper);

  Outcome run(std::int64_t node_budget);

  std::int64_t nodes() const { return nodes_; }
  const std::vector<Bytes>& offsets() const { return offset_; }

  // The first of the order, up to the depth, are placed, and where witnesses are kept none is
  // touched by them.
  bool check_invariants(std::size_t depth) const;

 private:
  bool placed(ItemIdx i) const { return offset_[i] != kNoOffset; }
  bool late();
  Bytes first_free(ItemIdx i, Bytes from);
  Bytes lowest_roof(ItemIdx i) const;
  bool consistent(ItemIdx i);
  bool neighbours_fit(ItemIdx i);
  bool sections_fit(ItemIdx i);
  bool section_fits(SectionIdx s);
  void list_runs(SectionIdx s);

  const Rectangles& rectangles_;
  const Items& items_;
  const CspOptions options_;
  const Bytes step_;
  Stopper& stopper_;
  std::vector<ItemIdx> order_;
  std::vector<Bytes> offset_;
  std::vector<Bytes> next_;  // by depth: the offset to be tried next
  // By item: an offset that nothing placed touches. Backtracking keeps it so.
  std::vector<Bytes> witness_;
  std::vector<std::pair<Bytes, Bytes>> taken_;  // of the item or section at work; and its free runs
  std::vector<Bytes> runs_;
  std::int64_t nodes_ = 0;
};

}  // namespace memplan
