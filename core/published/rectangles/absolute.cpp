#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/rectangles.h"
#include "model/answers.h"
#include "model/items.h"
#include "published/rectangles/geometry.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr ItemIdx kWideItems = 1024;  // items from which sorting a neighbourhood takes long

// Absolute placements: one buffer after another at one offset after another.
//
//   C +--------------------+    A section's free runs, here of 2 and 1. In all, the three cells
//     |    |######|        |    would hold buffers of 1 and 2; and for buffers of 3, none of them
//     |    |######|        |    counts.
//     |    |      |        |
//   0 +--------------------+
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

}  // namespace

AbsoluteSearch::AbsoluteSearch(const Rectangles& rectangles, const CspOptions& options, Bytes step,
                               Stopper& stopper)
    : rectangles_(rectangles),
      items_(rectangles.items),
      options_(options),
      step_(step),
      stopper_(stopper),
      order_(items_.size.size()),
      offset_(items_.size.size(), kNoOffset),
      next_(items_.earliest),
      witness_(items_.earliest) {
  std::iota(order_.begin(), order_.end(), 0);
  // A buffer with one legal offset is no choice, so it goes first.
  const auto fixed = [this](ItemIdx i) { return items_.earliest[i] == items_.latest[i]; };
  std::stable_sort(order_.begin(), order_.end(), [&](ItemIdx a, ItemIdx b) {
    if (fixed(a) != fixed(b)) return fixed(a);
    return options_.area_order && rectangles_.area[a] > rectangles_.area[b];
  });
}

Outcome AbsoluteSearch::run(std::int64_t node_budget) {
  const auto count = order_.size();
  std::size_t depth = 0;
  if (count > 0) next_[0] = items_.earliest[order_[0]];
  while (depth < count) {
    const ItemIdx i = order_[depth];
    MEMPLAN_ASSERT(check_invariants(depth));
    const Bytes offset = first_free(i, next_[depth]);
    if (late() || nodes_ >= node_budget) return Outcome::kCutShort;
    if (offset > items_.latest[i]) {
      if (depth == 0) return Outcome::kExhausted;
      offset_[order_[--depth]] = kNoOffset;
      continue;
    }
    ++nodes_;
    next_[depth] = offset + step_;
    // Below every roof, i could as well be here: it would leave a strip that nothing can fill.
    if (options_.dominance && offset == items_.earliest[i]) {
      next_[depth] = std::max(next_[depth], lowest_roof(i));
    }
    offset_[i] = offset;
    if (consistent(i)) {
      if (++depth < count) next_[depth] = items_.earliest[order_[depth]];
    } else {
      offset_[i] = kNoOffset;
    }
  }
  return Outcome::kSolved;
}

bool AbsoluteSearch::check_invariants(std::size_t depth) const {
  for (std::size_t k = 0; k < order_.size(); ++k) {
    const ItemIdx i = order_[k];
    MEMPLAN_ASSERT(placed(i) == (k < depth));
    if (!placed(i)) continue;
    MEMPLAN_ASSERT(items_.legal_above(i, offset_[i]) == offset_[i] &&
                   offset_[i] <= items_.latest[i]);
    for (const ItemIdx j : rectangles_.neighbours[i]) {
      const Bytes other = placed(j) ? offset_[j] : witness_[j];
      MEMPLAN_ASSERT((!placed(j) && !options_.forward_checking) ||
                     other + items_.size[j] <= offset_[i] || offset_[i] + items_.size[i] <= other);
    }
  }
  return true;
}
bool AbsoluteSearch::late() {
  return items_.count() > kWideItems ? stopper_.look() : stopper_.expired();
}

// The least legal offset of i at or above `from` that nothing placed touches, or more than latest.
Bytes AbsoluteSearch::first_free(ItemIdx i, Bytes from) {
  taken_.clear();
  for (const ItemIdx j : rectangles_.neighbours[i]) {
    if (placed(j)) taken_.emplace_back(offset_[j], offset_[j] + items_.size[j]);
  }
  std::sort(taken_.begin(), taken_.end());
  Bytes offset = items_.legal_above(i, from);
  for (const auto& [lower, upper] : taken_) {
    if (offset > items_.latest[i] || offset + items_.size[i] <= lower) break;
    if (upper > offset) offset = items_.legal_above(i, upper);
  }
  return offset;
}

// The lowest end that a buffer which is not placed, other than i, can have.
Bytes AbsoluteSearch::lowest_roof(ItemIdx i) const {
  Bytes roof = items_.latest[i] + 1;
  for (const ItemIdx j : rectangles_.neighbours[i]) {
    if (!placed(j)) roof = std::min(roof, items_.earliest[j] + items_.size[j]);
  }
  return roof;
}

// Whether the buffers that are not placed may still fit after i is placed.
bool AbsoluteSearch::consistent(ItemIdx i) {
  return (!options_.forward_checking || neighbours_fit(i)) &&
         (!options_.wasted_space || sections_fit(i));
}

bool AbsoluteSearch::neighbours_fit(ItemIdx i) {
  for (const ItemIdx j : rectangles_.neighbours[i]) {
    const bool touched =
        offset_[i] < witness_[j] + items_.size[j] && witness_[j] < offset_[i] + items_.size[i];
    if (placed(j) || !touched) continue;
    if (late()) return false;
    const Bytes other = first_free(j, items_.earliest[j]);
    if (other > items_.latest[j]) return false;
    witness_[j] = other;
  }
  return true;
}

bool AbsoluteSearch::sections_fit(ItemIdx i) {
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    for (SectionIdx s = span->first; s <= span->last; ++s) {
      if (late() || !section_fits(s)) return false;
    }
  }
  return true;
}

// The bound by wasted space: bin packing in which a buffer may be split, but only over runs that
// could hold all of it. The runs are sorted by length, so that it is enough to compare the buffers
// of at least some size with the runs of at least that length.
bool AbsoluteSearch::section_fits(SectionIdx s) {
  list_runs(s);
  std::size_t run = 0;
  Bytes room = 0;
  for (const ItemIdx i : rectangles_.in_section[s]) {
    if (placed(i)) continue;
    for (; run < runs_.size() && runs_[run] >= items_.size[i]; ++run) room += runs_[run];
    MEMPLAN_ASSERT(room >= 0);
    room -= items_.size[i];
    if (room < 0) return false;
  }
  return true;
}

// The lengths of what is free between 0 and the capacity, longest first.
void AbsoluteSearch::list_runs(SectionIdx s) {
  taken_.clear();
  for (const Reserved& r : items_.reserved) taken_.emplace_back(r.lower, r.upper);
  for (const ItemIdx i : rectangles_.in_section[s]) {
    if (placed(i)) taken_.emplace_back(offset_[i], offset_[i] + items_.size[i]);
  }
  std::sort(taken_.begin(), taken_.end());
  taken_.emplace_back(items_.capacity, items_.capacity);
  runs_.clear();
  Bytes top = 0;
  for (const auto& [lower, upper] : taken_) {
    MEMPLAN_ASSERT(lower >= top);  // what is taken does not overlap
    if (lower > top) runs_.push_back(lower - top);
    top = upper;
  }
  std::sort(runs_.begin(), runs_.end(), std::greater<>());
}

namespace {

Bytes largest_domain(const Items& items, Bytes step) {
  Bytes most = 0;
  for (ItemIdx i = 0; i < items.count(); ++i) {
    most = std::max(most, (items.latest[i] - items.earliest[i]) / step + 1);
  }
  return most;
}

Plan place_absolutely(const Problem& problem, const Items& items, const CspOptions& options,
                      std::int64_t node_budget, Stopper& stopper) {
  Rectangles rectangles(items);
  if (const char* refusal = rectangles.build(problem, stopper)) return unknown(refusal);
  const Bytes step = grid_step(problem, items);
  AbsoluteSearch search(rectangles, options, step, stopper);
  const Outcome outcome = search.run(node_budget);
  // The note has the number of offsets, since no time is enough for a fine grid (MiniMalloc,
  // section 8.1).
  Plan plan =
      plan_of_outcome(outcome, problem, items, search.offsets(),
                      "the budget ran out, with up to " +
                          std::to_string(largest_domain(items, step)) + " offsets for a buffer");
  plan.stats.nodes = search.nodes();
  return plan;
}

}  // namespace

Plan csp(const Problem& problem, const Sections& sections, Bytes capacity,
         const CspOptions& options, std::int64_t node_budget, Stopper& stopper) {
  const Items items = make_items(problem, sections, capacity);
  std::optional<Plan> plan = refuted_at_once(items);
  if (!plan) plan = place_absolutely(problem, items, options, node_budget, stopper);
  return found_by("csp", *std::move(plan));
}

}  // namespace memplan
