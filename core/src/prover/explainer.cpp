#include "prover/explainer.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::prover {

namespace {

// Each doubles the subsets whose sums are compared.
constexpr int kMostReopened = 6;

}  // namespace

Explainer::Explainer(const Model& model, const ProverOptions& options, const Trail& trail,
                     const Clauses& clauses)
    : model_(model), options_(options), trail_(trail), clauses_(clauses) {}

void Explainer::require(Half h, Bytes value) {
  if (!options_.lifting && model_.is_item(h)) value = trail_.bound_before(h, position_);
  premises_.push_back({h, value});
}

const std::vector<Literal>& Explainer::explain(std::int32_t position, Literal needed) {
  MEMPLAN_ASSERT(trail_[position].half == needed.half && trail_[position].value >= needed.value);
  premises_.clear();
  position_ = position;
  const Reason reason = trail_[position].reason;
  const Half h = needed.half;
  const int direction = reason.direction;
  if (model_.is_item(h)) needed.value = model_.unround(h, needed.value);
  switch (reason.rule) {
    case Rule::kRoot:
    case Rule::kDecision:
      break;
    case Rule::kClause:
      clause(reason.index, h);
      break;
    case Rule::kBefore:
      require(model_.arc_of(reason.index, h >> 1) ^ direction, 1);
      require(2 * reason.index + direction, needed.value - model_.size[reason.index]);
      break;
    case Rule::kTooLate:
      too_late(h, direction);
      break;
    case Rule::kSet:
      set_bound(h, needed.value, reason.index);
      break;
    case Rule::kEdge:
      edge(h, trail_.window(reason.index));
      break;
    case Rule::kCut: {
      const int tail = model_.tail_of(h), head = model_.head_of(h);
      const bool cuts_tail = model_.is_cut_by(tail, reason.index);
      cut(reason.index, direction, cuts_tail ? tail : head, cuts_tail ? head : tail);
      break;
    }
    case Rule::kCutSums: {
      const int tail = model_.tail_of(h), head = model_.head_of(h);
      cut_sums(reason.index, model_.is_cut_by(tail, reason.index) ? tail : head, h);
      break;
    }
    case Rule::kBody:
      require(2 * reason.index + direction,
              needed.value - model_.shift(reason.index, h >> 1, direction));
      break;
    case Rule::kBodies:
      require(reason.index, 1);
      break;
    case Rule::kTransitive:
      require(model_.arc_of(model_.tail_of(h), reason.index), 1);
      require(model_.arc_of(reason.index, model_.head_of(h)), 1);
      break;
  }
  MEMPLAN_ASSERT(premises_hold());
  return premises_;
}

const std::vector<Literal>& Explainer::explain(const Conflict& conflict) {
  if (conflict.kind == Conflict::Kind::kCrossed) {
    // The last entry is explained only as far as it contradicts the other half. It must not be a
    // premise itself: a clause with both halves would only say that x < v or x >= v.
    const Literal other{conflict.index ^ 1, trail_.bound(conflict.index ^ 1)};
    explain(trail_.size() - 1, model_.negation(other));
    MEMPLAN_ASSERT(trail_[trail_.size() - 1].half == conflict.index);
    premises_.push_back(other);
    return premises_;
  }
  premises_.clear();
  position_ = trail_.size();
  if (conflict.kind == Conflict::Kind::kClause) {
    clause(conflict.index, -1);
  } else if (conflict.kind == Conflict::Kind::kCut) {
    const Window& w = trail_.window(conflict.index);
    cut(w.clique, w.direction, static_cast<int>(w.start), -1);
  } else if (conflict.kind == Conflict::Kind::kCutSums) {
    const Window& w = trail_.window(conflict.index);
    cut_sums(w.clique, static_cast<int>(w.start), -1);
  } else {
    overload(trail_.window(conflict.index));
  }
  MEMPLAN_ASSERT(premises_hold());
  return premises_;
}

bool Explainer::premises_hold() const {
  if (!kAssertions) return true;
  return std::all_of(premises_.begin(), premises_.end(), [this](const Literal& l) {
    return trail_.bound_before(l.half, position_) >= l.value;
  });
}
void Explainer::clause(std::int32_t index, Half implied) {
  for (const Literal* l = clauses_.begin(index); l != clauses_.end(index); ++l) {
    if (l->half != implied) premises_.push_back(model_.negation(*l));
  }
}

// Two bounds of which only the sum matters. The surplus weakens one of them: one which it turns
// into a fact, or else the younger one.
void Explainer::require_pair(Half a, Bytes a_bound, Half b, Bytes b_bound, Bytes sum) {
  MEMPLAN_ASSERT(a_bound + b_bound >= sum);
  const Bytes spare = options_.lifting ? a_bound + b_bound - sum : 0;
  if (spare > 0) {
    const Bytes a_fact = trail_.fact(a), b_fact = trail_.fact(b);
    if (b_bound - spare <= b_fact) {
      const Bytes given = std::clamp<Bytes>(b_bound - b_fact, 0, spare);
      b_bound -= given;
      a_bound -= spare - given;
    } else if (a_bound - spare <= a_fact) {
      const Bytes given = std::clamp<Bytes>(a_bound - a_fact, 0, spare);
      a_bound -= given;
      b_bound -= spare - given;
    } else if (trail_.origin({a, a_bound}) > trail_.origin({b, b_bound})) {
      a_bound -= spare;
    } else {
      b_bound -= spare;
    }
  }
  premises_.push_back({a, a_bound});
  premises_.push_back({b, b_bound});
}

// The arc's head in this direction began so late that it could not lie before its tail.
void Explainer::too_late(Half a, int direction) {
  const int before = direction == 0 ? model_.tail_of(a) : model_.head_of(a);
  const int after = direction == 0 ? model_.head_of(a) : model_.tail_of(a);
  const Half late = 2 * after + direction, early = 2 * before + (direction ^ 1);
  require_pair(late, trail_.bound_before(late, position_), early,
               trail_.bound_before(early, position_), 1 - model_.size[before] - model_.size[after]);
}

// Items decided to lie before h's, that begin at `start` or later, with sizes that sum up to what
// is needed above `start`.
void Explainer::set_bound(Half h, Bytes value, std::int32_t clique) {
  const int item = h >> 1, direction = h & 1;
  members_.clear();
  for (const auto* m = model_.cliques.first(clique); m != model_.cliques.last(clique); ++m) {
    if (*m == item) continue;
    if (trail_.bound_before(model_.arc_of(*m, item) ^ direction, position_) <= 0) continue;
    members_.push_back({*m, trail_.bound_before(2 * *m + direction, position_), 0});
  }
  std::sort(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
    return a.start != b.start ? a.start > b.start : a.item < b.item;
  });
  Bytes sum = 0, start = 0;
  std::size_t used = 0;
  while (used < members_.size()) {
    start = members_[used].start;
    sum += model_.size[members_[used++].item];
    if (start + sum >= value) break;
  }
  MEMPLAN_ASSERT(start + sum >= value);  // the pile explains as much as is needed
  Bytes spare = options_.lifting ? start + sum - value : 0;
  for (std::size_t k = 0; k < used; ++k) {
    const int before = members_[k].item;
    if (options_.lifting && model_.size[before] <= spare) {
      spare -= model_.size[before];
      continue;
    }
    require(model_.arc_of(before, item) ^ direction, 1);
    members_[k].end = 1;
  }
  for (std::size_t k = 0; k < used; ++k) {
    if (members_[k].end == 1) require(2 * members_[k].item + direction, start - spare);
  }
}

// If its head lay before its tail (in the window's direction), it would have to end within the
// window, with all the items of the window, and there is no room for that.
void Explainer::edge(Half a, const Window& window) {
  const int before = window.direction == 0 ? model_.tail_of(a) : model_.head_of(a);
  const int after = window.direction == 0 ? model_.head_of(a) : model_.tail_of(a);
  window_load(window, after, before);
}

// Too much below the item in one clique and above it in the other, with what is in both; `other`
// counted in if it is there. What is in both needs no premise.
void Explainer::cut(std::int32_t index, int direction, int item, int other) {
  const Cut& cut = model_.cuts[index];
  Bytes spare = cut.both + (other < 0 ? 0 : model_.size[other]) - trail_.room() - 1;
  members_.clear();
  for (const int side : {0, 1}) {
    const Lists& only = model_.cut_sides[side];
    for (const auto* i = only.first(index); i != only.last(index); ++i) {
      const Half a = (direction ^ side) == 0 ? model_.arc_of(*i, item) : model_.arc_of(item, *i);
      if (*i == other || trail_.bound_before(a, position_) <= 0) continue;
      members_.push_back({*i, a, 0});
      spare += model_.size[*i];
    }
  }
  MEMPLAN_ASSERT(spare >= 0);
  for (const Member& m : members_) {
    if (options_.lifting && model_.size[m.item] <= spare) {
      spare -= model_.size[m.item];
    } else {
      require(static_cast<Half>(m.start), 1);
    }
  }
}

namespace {

// The sizes that lie below an item in one clique of a cut, for all ways to put what is open.
using Sums = std::vector<Bytes>;

void add_open(Bytes size, Sums* sums) {
  const std::size_t count = sums->size();
  for (std::size_t k = 0; k < count; ++k) sums->push_back((*sums)[k] + size);
}

void add_below(Bytes size, Sums* sums) {
  for (Bytes& sum : *sums) sum += size;
}

}  // namespace

// No subsets of the open items fit around the item, but for the conclusion (-1: none at all). The
// youngest premises that are not needed count as open.
void Explainer::cut_sums(std::int32_t index, int item, Half conclusion) {
  struct Known {
    std::int32_t position;
    Half arc;
    Bytes size;
    int side;
    bool below;
    bool used;
  };
  std::vector<Known> known;
  Sums sums[2] = {{0}, {0}};
  Bytes total[2] = {0, 0};
  for (const int side : {0, 1}) {
    const Lists& only = model_.cut_sides[side];
    for (const auto* i = only.first(index); i != only.last(index); ++i) {
      const Half below = model_.arc_of(*i, item), above = below ^ 1;
      const Bytes size = model_.size[*i];
      total[side] += size;
      if (below == conclusion || above == conclusion) {  // its opposite is refuted
        if (above == conclusion) add_below(size, &sums[side]);
      } else if (trail_.bound_before(below, position_) > 0) {
        known.push_back({trail_.origin({below, 1}), below, size, side, true, true});
      } else if (trail_.bound_before(above, position_) > 0) {
        known.push_back({trail_.origin({above, 1}), above, size, side, false, true});
      } else {
        add_open(size, &sums[side]);
      }
    }
  }
  std::sort(known.begin(), known.end(),
            [](const Known& a, const Known& b) { return a.position > b.position; });
  const Bytes room = trail_.room() - model_.cuts[index].both;
  const auto none_fits = [&] {
    Sums all[2] = {sums[0], sums[1]};
    for (const Known& k : known) {
      if (!k.used) add_open(k.size, &all[k.side]);
      if (k.used && k.below) add_below(k.size, &all[k.side]);
    }
    std::sort(all[1].begin(), all[1].end());
    return std::all_of(all[0].begin(), all[0].end(), [&](Bytes first) {
      const auto second = std::lower_bound(all[1].begin(), all[1].end(), first - (room - total[1]));
      return second == all[1].end() || *second > first + (room - total[0]);
    });
  };
  MEMPLAN_ASSERT(none_fits());
  int open = 0;
  for (Known& k : known) {
    if (options_.lifting && open < kMostReopened) {
      k.used = false;
      if (none_fits()) {
        ++open;
        continue;
      }
      k.used = true;
    }
    require(k.arc, 1);
  }
}

void Explainer::overload(const Window& window) { window_load(window, -1, -1); }

// The items of the window, and the outsider from its start on, do not fit between its bounds.
// `kept` is the item before which the outsider would end. It must end in the window even if its
// size does not count.
void Explainer::window_load(const Window& window, int outsider, int kept) {
  const int d = window.direction;
  members_.clear();
  Bytes load = outsider < 0 ? 0 : model_.size[outsider];
  for (const auto* m = model_.cliques.first(window.clique); m != model_.cliques.last(window.clique);
       ++m) {
    if (*m == outsider) continue;
    const Bytes start = trail_.bound_before(2 * *m + d, position_);
    const Bytes end = -trail_.bound_before(2 * *m + (d ^ 1), position_);
    if (start < window.start || end > window.end) continue;
    members_.push_back({*m, start, end});
    load += model_.size[*m];
  }
  MEMPLAN_ASSERT(window.start + load > window.end);
  Bytes spare = options_.lifting ? window.start + load - window.end - 1 : 0;
  const auto drop = [&](const Member& m) {
    if (model_.size[m.item] > spare) return false;
    spare -= model_.size[m.item];
    return true;
  };
  bool kept_counts = true;
  members_.erase(std::remove_if(members_.begin(), members_.end(),
                                [&](const Member& m) {
                                  if (!drop(m)) return false;
                                  if (m.item == kept) kept_counts = false;
                                  return true;
                                }),
                 members_.end());
  // The surplus moves the bound that can turn more premises into facts.
  Bytes start = window.start, end = window.end;
  Bytes last = end;
  for (const Member& m : members_) {
    last = std::max(last, -trail_.fact(2 * m.item + (d ^ 1)));
  }
  if (last - end <= spare) {
    start -= spare - (last - end);
    end = last;
  } else {
    start -= spare;
  }
  if (outsider >= 0) require(2 * outsider + d, start);
  for (const Member& m : members_) {
    require(2 * m.item + d, start);
    require(2 * m.item + (d ^ 1), -end);
  }
  if (!kept_counts) require(2 * kept + (d ^ 1), -end - model_.size[kept]);
}

}  // namespace memplan::prover
