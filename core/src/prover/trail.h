// The trail: what is known at a node, and in which order it was derived.
#pragma once

#include <cstdint>
#include <vector>

#include "prover/halt.h"
#include "prover/literal.h"
#include "prover/model.h"
#include "util/invariants.h"

namespace memplan::prover {

// Why a bound rose. Premises are found from the trail only when conflict analysis needs them: most
// are never needed, and by then it is known how much of the bound is.
enum class Rule : std::uint8_t {
  kRoot,        // given: the ends of the arena, a symmetry
  kDecision,    // also the opposite of a decision, where nothing is learned
  kClause,      // index: the clause
  kBefore,      // index: the item that lies before this one
  kTooLate,     // an arc: the other way round, its tail would end after its head must begin
  kSet,         // index: a clique; some of its items lie before this one, side by side
  kEdge,        // an arc; index: a window with no room for its head
  kTransitive,  // an arc; index: the item between its ends
  kCut,         // an arc; index: a cut
  kCutSums,     // an arc; index: a cut, of which no subsets of open items fit otherwise
  kBody,        // index: the item that took all of its body along
  kBodies,      // an arc; index: one between the same bodies, which leaves no other way round
};

struct Reason {
  Rule rule = Rule::kRoot;
  std::uint8_t direction = 0;  // in which the rule was read
  std::int32_t index = -1;
};

// The items of a clique that start at `start` or later and end at `end` or before (in a direction).
struct Window {
  std::int32_t clique = 0;
  std::int32_t direction = 0;
  Bytes start = 0;
  Bytes end = 0;
};

// The kind of a conflict, and where it is.
struct Conflict {
  enum class Kind : std::uint8_t {
    kCrossed,   // index: a half above what the other one allows
    kClause,    // index: a clause that is false
    kOverload,  // index: a window with too much in it
    kCut,       // index: a window that names a cut and an item
    kCutSums,   // the same
  };
  Kind kind = Kind::kCrossed;
  std::int32_t index = -1;
};

struct Entry {
  Bytes value;
  Half half;
  std::int32_t previous;  // position of the entry that it tops
  std::int32_t level;
  Reason reason;
};

class Trail {
 public:
  explicit Trail(const Model& model, const Halt& halt = {});

  // Whether `halt` let it be made: half of a trail is of no use.
  bool is_made() const { return size() >= model_.halves(); }

  Bytes bound(Half h) const { return bound_[h]; }
  const Bytes* bounds() const { return bound_.data(); }
  Bytes fact(Half h) const { return fact_[h]; }  // the bound at level 0
  bool holds(Literal l) const { return bound_[l.half] >= l.value; }
  bool crossed(Half h) const { return bound_[h] + bound_[h ^ 1] + model_.extent[h >> 1] > 0; }

  // kBelow: u lies below v. A row per item, so that a scan over one item's pairs stays in cache.
  static constexpr std::int8_t kBelow = 1, kAbove = -1, kOpen = 0, kApart = 2;
  const std::int8_t* relations(int u) const {
    return relation_.data() + static_cast<std::size_t>(u) * model_.items;
  }

  // Raises a bound to the next legal value. False if the two halves now contradict each other.
  bool raise(Half h, Bytes value, Reason reason) {
    MEMPLAN_ASSERT(h >= 0 && h < model_.halves() && (model_.is_item(h) || value <= 1));
    if (value <= bound_[h]) return true;
    const bool item = model_.is_item(h);
    if (item) value = model_.round(h, value);
    entries_.push_back({value, h, last_[h], level(), reason});
    MEMPLAN_ASSERT(value > bound_[h]);  // bounds only rise, also by rounding
    last_[h] = size() - 1;
    bound_[h] = value;
    if (level() == 0) fact_[h] = value;
    if (crossed(h)) return false;
    if (!item) relate(h, kBelow, kAbove);
    return true;
  }

  std::int32_t add_window(const Window& window) {
    windows_.push_back(window);
    return static_cast<std::int32_t>(windows_.size()) - 1;
  }
  const Window& window(std::int32_t index) const { return windows_[index]; }

  int level() const { return static_cast<int>(levels_.size()); }
  void open_level() { levels_.push_back({size(), static_cast<std::int32_t>(windows_.size())}); }
  // Forgets all levels above `level`; `undone(half)` is called for every entry that goes.
  template <typename Undone>
  void backtrack(int level, Undone undone);

  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }
  const Entry& operator[](std::int32_t position) const { return entries_[position]; }
  const Entry& decision(int level) const { return entries_[levels_[level - 1].entries]; }
  // The first entry that makes a literal true which holds now.
  std::int32_t origin(Literal l) const {
    MEMPLAN_ASSERT(holds(l));
    std::int32_t position = last_[l.half];
    for (std::int32_t p = entries_[position].previous; p >= 0 && entries_[p].value >= l.value;
         p = entries_[p].previous) {
      position = p;
    }
    return position;
  }
  // A half's bound just before an entry was made.
  Bytes bound_before(Half h, std::int32_t position) const {
    std::int32_t p = last_[h];
    MEMPLAN_ASSERT(position > h);  // the entry that every half begins with
    while (p >= position) p = entries_[p].previous;
    return entries_[p].value;
  }
  void rename_clauses(const std::vector<std::int32_t>& name) {
    for (Entry& entry : entries_) {
      MEMPLAN_ASSERT(entry.reason.rule != Rule::kClause || name[entry.reason.index] >= 0);
      if (entry.reason.rule == Rule::kClause) entry.reason.index = name[entry.reason.index];
    }
  }
  // The distance between the least offset and the greatest end of all items, by the facts.
  Bytes room() const { return room_; }
  void measure();
  bool is_last(std::int32_t position) const { return last_[entries_[position].half] == position; }

  // Every half is a chain of entries that rise, levels and windows are in order, and facts, bounds
  // and relations are what the entries say.
  bool check_invariants() const;

 private:
  struct Level {
    std::int32_t entries;
    std::int32_t windows;
  };

  void relate(Half a, std::int8_t forth, std::int8_t back) {
    const int u = model_.tail_of(a), v = model_.head_of(a);
    relation_[static_cast<std::size_t>(u) * model_.items + v] = forth;
    relation_[static_cast<std::size_t>(v) * model_.items + u] = back;
  }

  const Model& model_;
  std::vector<Bytes> bound_, fact_;
  std::vector<std::int32_t> last_;
  std::vector<std::int8_t> relation_;  // items x items
  std::vector<Entry> entries_;
  std::vector<Window> windows_;
  std::vector<Level> levels_;
  Bytes room_ = 0;
};

template <typename Undone>
void Trail::backtrack(int level, Undone undone) {
  if (this->level() <= level) return;
  const Level to = levels_[level];
  for (std::int32_t p = size() - 1; p >= to.entries; --p) {
    const Entry& entry = entries_[p];
    const Half h = entry.half;
    // An arc that crossed its opposite was never related.
    if (!model_.is_item(h) && !crossed(h)) relate(h, kOpen, kOpen);
    MEMPLAN_ASSERT(last_[h] == p && entry.previous >= 0 && entry.level > level);
    last_[h] = entry.previous;
    bound_[h] = entries_[entry.previous].value;
    undone(h);
  }
  entries_.resize(to.entries);
  windows_.resize(to.windows);
  levels_.resize(level);
}

}  // namespace memplan::prover
