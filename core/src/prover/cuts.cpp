#include "prover/cuts.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::prover {

Cuts::Cuts(const Model& model, Trail& trail)
    : model_(model), trail_(trail), touched_(model.items, 0) {}

void Cuts::forget() {
  for (const std::int32_t i : queue_) touched_[i] = false;
  queue_.clear();
}

bool Cuts::propagate(Conflict* conflict) {
  while (!queue_.empty()) {
    const std::int32_t item = queue_.back();
    queue_.pop_back();
    touched_[item] = false;
    const std::int32_t before = trail_.size();
    for (const auto* cut = model_.cuts_of.first(item); cut != model_.cuts_of.last(item); ++cut) {
      const Balance balance = weigh(item, *cut);
      for (const int d : {0, 1}) {
        if (balance.used[d] <= balance.room) continue;
        *conflict = {Conflict::Kind::kCut, trail_.add_window({*cut, d, item, 0})};
        return false;
      }
      const Bytes most = std::max(balance.used[0], balance.used[1]);
      if (most + balance.largest > balance.room && !decide(item, *cut, balance, conflict)) {
        return false;
      }
    }
    if (trail_.size() > before) return true;
  }
  return true;
}

// Way 0 counts what is below the item in the first clique and above it in the second; way 1 counts
// the rest.
Cuts::Balance Cuts::weigh(int item, std::int32_t cut) {
  const std::int8_t* const relation = trail_.relations(item);
  Balance balance;
  balance.room = trail_.room() - model_.cuts[cut].both;
  for (const int side : {0, 1}) {
    const Lists& only = model_.cut_sides[side];
    steps_ += only.size(cut);
    for (const auto* i = only.first(cut); i != only.last(cut); ++i) {
      if (relation[*i] == Trail::kOpen) {
        balance.largest = std::max(balance.largest, model_.size[*i]);
      } else {
        const int below = relation[*i] == Trail::kAbove ? 0 : 1;  // the item lies above i
        MEMPLAN_ASSERT(relation[*i] != Trail::kApart);  // both are in the clique of that side
        balance.used[below ^ side] += model_.size[*i];
      }
    }
  }
  return balance;
}

// Items that have no room left on one side of the item go to the other.
bool Cuts::decide(int item, std::int32_t cut, const Balance& balance, Conflict* conflict) {
  const std::int8_t* const relation = trail_.relations(item);
  for (const int side : {0, 1}) {
    const Lists& only = model_.cut_sides[side];
    for (const auto* i = only.first(cut); i != only.last(cut); ++i) {
      if (relation[*i] != Trail::kOpen) continue;
      for (const int d : {0, 1}) {
        if (balance.used[d] + model_.size[*i] <= balance.room) continue;
        const bool full_below = d == side;
        const Half a = full_below ? model_.arc_of(item, *i) : model_.arc_of(*i, item);
        if (trail_.raise(a, 1, {Rule::kCut, static_cast<std::uint8_t>(d), cut})) continue;
        *conflict = {Conflict::Kind::kCrossed, a};
        return false;
      }
    }
  }
  return true;
}

}  // namespace memplan::prover
