#include "prover/cuts.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::prover {

namespace {

// With more open items, the sums of all subsets cost more than they decide.
constexpr int kMostOpen = 6;

}  // namespace

Cuts::Cuts(const Model& model, const ProverOptions& options, Trail& trail)
    : model_(model), options_(options), trail_(trail), touched_(model.cuts_of.values.size(), 0) {}

void Cuts::touch(int item, int other) {
  steps_ += model_.cuts_beside.size(other);
  for (const auto* cut = model_.cuts_beside.first(other); cut != model_.cuts_beside.last(other);
       ++cut) {
    const std::int32_t index = model_.place_of(item, *cut);
    if (index >= 0) touch({item, index});
  }
}

void Cuts::touch_all() {
  for (int i = 0; i < model_.cuts_of.count(); ++i) {
    for (std::int32_t k = model_.cuts_of.begin[i]; k < model_.cuts_of.begin[i + 1]; ++k) {
      touch({i, k});
    }
  }
}

void Cuts::forget() {
  for (const Place& place : queue_) touched_[place.index] = false;
  queue_.clear();
}

// It stops at the first consequence, and a further call resumes.
bool Cuts::propagate(Conflict* conflict) {
  const std::int32_t before = trail_.size();
  while (!queue_.empty() && trail_.size() == before) {
    const Place place = queue_.back();
    queue_.pop_back();
    touched_[place.index] = false;
    if (!look(place.item, model_.cuts_of.values[place.index], conflict)) return false;
  }
  return true;
}

bool Cuts::look(int item, std::int32_t cut, Conflict* conflict) {
  const Balance balance = weigh(item, cut);
  for (const int d : {0, 1}) {
    if (balance.used[d] <= balance.room) continue;
    *conflict = {Conflict::Kind::kCut, trail_.add_window({cut, d, item, 0})};
    return false;
  }
  if (balance.open == 0) return true;
  const std::int32_t before = trail_.size();
  const Bytes most = std::max(balance.used[0], balance.used[1]);
  if (most + balance.largest > balance.room && !decide(item, cut, balance, conflict)) return false;
  if (!options_.cut_sums || trail_.size() > before || balance.open > kMostOpen) return true;
  return split(item, cut, balance, conflict);
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
      const Bytes size = model_.size[*i];
      balance.total[side] += size;
      if (relation[*i] == Trail::kOpen) {
        balance.largest = std::max(balance.largest, size);
        ++balance.open;
      } else {
        const int below = relation[*i] == Trail::kAbove ? 0 : 1;  // the item lies above i
        MEMPLAN_ASSERT(relation[*i] != Trail::kApart);  // both are in the clique of that side
        balance.used[below ^ side] += size;
        if (below == 0) balance.below[side] += size;
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

// Tries all ways to put the open items below or above the item. What lies below it in the first
// clique, and what does in the second, may differ by the room that the other items leave. An item
// that is on one side in all ways that are left is decided.
bool Cuts::split(int item, std::int32_t cut, const Balance& balance, Conflict* conflict) {
  const std::int8_t* const relation = trail_.relations(item);
  std::int32_t open[kMostOpen];
  Bytes sums[2][1 << kMostOpen];  // by side and set of open items: what lies below the item
  int count[2] = {0, 0};
  std::int32_t* next = open;
  for (const int side : {0, 1}) {
    const Lists& only = model_.cut_sides[side];
    Bytes* const sum = sums[side];
    sum[0] = balance.below[side];
    for (const auto* i = only.first(cut); i != only.last(cut); ++i) {
      if (relation[*i] != Trail::kOpen) continue;
      const int sets = 1 << count[side]++;
      for (int set = 0; set < sets; ++set) sum[sets + set] = sum[set] + model_.size[*i];
      *next++ = *i;
    }
  }
  MEMPLAN_ASSERT(count[0] + count[1] == balance.open);
  steps_ += std::int64_t{1} << balance.open;
  const int everyone = (1 << balance.open) - 1;
  int always = everyone, ever = 0;  // below the item
  for (int first = 0; first < 1 << count[0]; ++first) {
    const Bytes least = sums[0][first] - (balance.room - balance.total[1]);
    const Bytes most = sums[0][first] + (balance.room - balance.total[0]);
    for (int second = 0; second < 1 << count[1]; ++second) {
      if (sums[1][second] < least || sums[1][second] > most) continue;
      always &= first | second << count[0];
      ever |= first | second << count[0];
    }
    if (always == 0 && ever == everyone) return true;
  }
  if ((always & ~ever) != 0) {  // there was no way
    *conflict = {Conflict::Kind::kCutSums, trail_.add_window({cut, 0, item, 0})};
    return false;
  }
  for (int k = 0; k < balance.open; ++k) {
    const bool below = ((always >> k) & 1) != 0;
    if (!below && ((ever >> k) & 1) != 0) continue;
    const Half a = below ? model_.arc_of(open[k], item) : model_.arc_of(item, open[k]);
    if (trail_.raise(a, 1, {Rule::kCutSums, 0, cut})) continue;
    *conflict = {Conflict::Kind::kCrossed, a};
    return false;
  }
  return true;
}

}  // namespace memplan::prover
