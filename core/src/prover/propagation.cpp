#include "prover/propagation.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::prover {

Propagator::Propagator(const Model& model, const ProverOptions& options, Trail& trail,
                       Clauses& clauses)
    : model_(model),
      options_(options),
      trail_(trail),
      clauses_(clauses),
      cliques_(model, options, trail),
      cuts_(model, options, trail) {}

void Propagator::forget() {
  if (!moves_.empty()) next_ = settled_;
  moves_.clear();
  moved_ = 0;
  next_ = std::min(next_, trail_.size());
  settled_ = std::min(settled_, trail_.size());
  cliques_.forget();
  cuts_.forget();
}

void Propagator::narrow() { cuts_.touch_all(); }

// Three stages, each at a fixpoint of those before it:
//
//   1. entries of the trail, one by one: clauses, transitivity, groups; then cuts. Most of these
//      only decide orders.
//   2. bounds, from the lowest up. In another order, three of four rises are soon topped by others.
//   3. rules over cliques, which cost a scan of the clique: sets, overload, edge finding.
//
// A consequence in a later stage leads back to the first one. All bounds rise and orders stay, so
// this ends; only a cycle of groups can make bounds creep, and then `most` steps end it.
bool Propagator::propagate(Conflict* conflict, std::int64_t most, const Halt& halt) {
  const bool may_creep = model_.bodies.count() > 0;
  const std::int64_t last = steps() + most;
  for (;;) {
    is_short_ = may_creep && steps() >= last;
    if (is_short_) return true;
    while (next_ < trail_.size()) {
      is_short_ = halt.expired();
      if (is_short_) return true;
      if (may_creep && steps() >= last) break;
      if (!visit(next_++, conflict)) return false;
    }
    if (next_ < trail_.size()) continue;
    if (options_.cuts && !cuts_.propagate(conflict)) return false;
    if (next_ < trail_.size()) continue;
    if (!moves_.empty()) {
      if (!move_bounds(last, halt, conflict)) return false;
      is_short_ = !moves_.empty();
      if (is_short_) return true;
      continue;
    }
    settled_ = next_;
    if (options_.set_bounds && !cliques_.propagate_sets(conflict)) return false;
    if (next_ < trail_.size()) continue;
    if ((options_.overload || options_.edge_finding) && !cliques_.propagate_windows(conflict)) {
      return false;
    }
    if (next_ == trail_.size()) {
      MEMPLAN_ASSERT(is_fixpoint());
      return true;
    }
  }
}

bool Propagator::is_fixpoint() const {
  for (Half a = 2 * model_.items; a < model_.halves(); ++a) {
    if (trail_.bound(a) <= 0) continue;
    for (const int direction : {0, 1}) {
      const int first = direction == 0 ? model_.tail_of(a) : model_.head_of(a);
      const int second = direction == 0 ? model_.head_of(a) : model_.tail_of(a);
      MEMPLAN_ASSERT(trail_.bound(2 * second + direction) >=
                     trail_.bound(2 * first + direction) + model_.size[first]);
    }
  }
  for (int i = 0; i < model_.items; ++i) {
    const std::int32_t body = model_.body[i];
    if (body < 0) continue;
    for (const auto* k = model_.bodies.first(body); k != model_.bodies.last(body); ++k) {
      for (const int direction : {0, 1}) {
        MEMPLAN_ASSERT(trail_.bound(2 * *k + direction) >=
                       trail_.bound(2 * i + direction) + model_.shift(i, *k, direction));
      }
    }
  }
  return clauses_.is_settled() && check_invariants();
}
bool Propagator::visit(std::int32_t position, Conflict* conflict) {
  const Half h = trail_[position].half;
  const Bytes old = trail_[position].previous < 0 ? trail_[position].value - 1
                                                  : trail_[trail_[position].previous].value;
  if (!clauses_.propagate(h, old, conflict)) return false;
  if (!model_.is_item(h)) {
    if (trail_.bound(h) <= 0) return true;  // the root entry
    settle(h);
    return settle_bodies(h, conflict) && (!options_.transitivity || close(h, conflict));
  }
  cliques_.touch(h, old);
  // A later rise of the same half implies all that this one does, so only that one is propagated.
  if (position >= moved_ && trail_.is_last(position)) note({trail_.bound(h), h, kAll});
  return true;
}

// What moves a bound far up comes last: then most bounds rise once, to where they stay. Moves of
// bounds that have risen since they were noted are void, since those are noted again.
bool Propagator::move_bounds(std::int64_t last, const Halt& halt, Conflict* conflict) {
  const bool may_creep = model_.bodies.count() > 0;
  while (!moves_.empty() && !halt.expired() && !(may_creep && steps() >= last)) {
    const Move move = moves_.front();
    std::pop_heap(moves_.begin(), moves_.end(), is_later);
    moves_.pop_back();
    ++steps_;
    if (trail_.bound(move.source) != move.bound) continue;
    if (move.target == kAll) {
      if (!take_along(move.source, conflict) || !push(move.source, conflict)) return false;
    } else {
      const auto direction = static_cast<std::uint8_t>(move.source & 1);
      const int first = move.source >> 1;
      if (!lift(move.target, move.bound + model_.size[first], {Rule::kBefore, direction, first},
                conflict)) {
        return false;
      }
    }
  }
  if (moves_.empty()) moved_ = trail_.size();
  return true;
}

bool Propagator::is_later(const Move& a, const Move& b) { return a.bound > b.bound; }

void Propagator::note(Move move) {
  moves_.push_back(move);
  std::push_heap(moves_.begin(), moves_.end(), is_later);
}

// Raises a bound of an item, which then moves others in its turn.
bool Propagator::lift(Half h, Bytes value, Reason reason, Conflict* conflict) {
  const Bytes old = trail_.bound(h);
  if (value <= old) return true;
  if (!raise(h, value, reason, conflict)) return false;
  cliques_.touch(h, old);
  note({trail_.bound(h), h, kAll});
  return true;
}

bool Propagator::raise(Half h, Bytes value, Reason reason, Conflict* conflict) {
  if (trail_.raise(h, value, reason)) return true;
  *conflict = {Conflict::Kind::kCrossed, h};
  return false;
}

// When an item has risen, what lies after it rises too, and an item that could no longer be placed
// after it must lie before it.
bool Propagator::push(Half h, Conflict* conflict) {
  const int item = h >> 1;
  const auto direction = static_cast<std::uint8_t>(h & 1);
  const Bytes top = trail_.bound(h) + model_.size[item];
  const std::int8_t* const relation = trail_.relations(item);
  const std::int8_t before = direction == 0 ? Trail::kBelow : Trail::kAbove;
  const Bytes since = cliques_.settled(h);
  steps_ += model_.neighbours.size(item);
  for (const auto* v = model_.neighbours.first(item); v != model_.neighbours.last(item); ++v) {
    const std::int8_t r = relation[*v];
    if (r == before) {
      const Half other = 2 * *v + direction;
      if (!lift(other, top, {Rule::kBefore, direction, item}, conflict)) return false;
      cliques_.touch_set(other, since);
    } else if (r == Trail::kOpen) {
      if (top + trail_.bound(2 * *v + (direction ^ 1)) + model_.size[*v] <= 0) continue;
      const Half a = model_.arc_of(*v, item) ^ direction;
      if (!raise(a, 1, {Rule::kTooLate, direction, -1}, conflict)) return false;
    }
  }
  return true;
}

// An arc was decided: its head will rise above its tail, and its tail sink below its head.
void Propagator::settle(Half a) {
  if (options_.cuts) {
    cuts_.touch(model_.tail_of(a), model_.head_of(a));
    cuts_.touch(model_.head_of(a), model_.tail_of(a));
  }
  const int ends[2] = {model_.tail_of(a), model_.head_of(a)};
  for (const int direction : {0, 1}) {
    const Half source = 2 * ends[direction] + direction,
               target = 2 * ends[direction ^ 1] + direction;
    const Bytes bound = trail_.bound(source);
    if (bound + model_.size[ends[direction]] > trail_.bound(target)) note({bound, source, target});
    cliques_.touch_set(target);
  }
}

// The rest of a group moves with the item that has risen.
bool Propagator::take_along(Half h, Conflict* conflict) {
  const int item = h >> 1;
  const auto direction = static_cast<std::uint8_t>(h & 1);
  const std::int32_t body = model_.body[item];
  if (body < 0) return true;
  steps_ += model_.bodies.size(body);
  for (const auto* other = model_.bodies.first(body); other != model_.bodies.last(body); ++other) {
    const Bytes value = trail_.bound(h) + model_.shift(item, *other, direction);
    const Half moved = 2 * *other + direction;
    if (!lift(moved, value, {Rule::kBody, direction, item}, conflict)) return false;
  }
  return true;
}

// u lies below v. Other members of their groups, t and w, are in step with them: w below t as well
// would need room for w and u between the two distances.
//
//     ...-+---w---+---u---+-...        t: as far above u as it is in its group
//         |<- w to v: v -->|
bool Propagator::settle_bodies(Half a, Conflict* conflict) {
  const std::int32_t u = model_.tail_of(a), v = model_.head_of(a);
  if (model_.body[u] < 0 && model_.body[v] < 0) return true;
  const auto members = [this](const std::int32_t& item) {
    const std::int32_t body = model_.body[item];
    if (body < 0) return std::make_pair(&item, &item + 1);
    return std::make_pair(model_.bodies.first(body), model_.bodies.last(body));
  };
  const auto [first_t, last_t] = members(u);
  const auto [first_w, last_w] = members(v);
  for (const std::int32_t* t = first_t; t != last_t; ++t) {
    const std::int8_t* const relation = trail_.relations(*t);
    steps_ += last_w - first_w;
    for (const std::int32_t* w = first_w; w != last_w; ++w) {
      if (relation[*w] != Trail::kOpen && relation[*w] != Trail::kAbove) continue;
      const Bytes room = model_.lead[*t] - model_.lead[u] + model_.lead[v] - model_.lead[*w];
      if (room >= model_.size[u] + model_.size[*w]) continue;
      if (!raise(model_.arc_of(*t, *w), 1, {Rule::kBodies, 0, a}, conflict)) return false;
    }
  }
  return true;
}

// Whether nothing follows for an item from its relations to u and to v, where u lies below v.
bool Propagator::is_closed(std::int8_t of_u, std::int8_t of_v) {
  const bool above = (of_v == Trail::kBelow) & ((of_u == Trail::kOpen) | (of_u == Trail::kAbove));
  return !(above | ((of_u == Trail::kAbove) & (of_v == Trail::kOpen)));
}

// If u lies below v and v below w, u lies below w. Bounds imply it only at the end of a long climb.
bool Propagator::close(Half a, Conflict* conflict) {
  const int u = model_.tail_of(a), v = model_.head_of(a);
  const std::int8_t* const of_u = trail_.relations(u);
  const std::int8_t* const of_v = trail_.relations(v);
  steps_ += model_.neighbours.size(v);
  // Consequences are rare, so that whole blocks are looked at first, in a loop that compilers turn
  // into vectors.
  constexpr int kBlock = 16;
  for (int first = 0; first < model_.items; first += kBlock) {
    const int last = std::min(first + kBlock, model_.items);
    int any = 0;
    for (int w = first; w < last; ++w) any |= is_closed(of_u[w], of_v[w]) ? 0 : 1;
    if (any == 0) continue;
    for (int w = first; w < last; ++w) {
      if (is_closed(of_u[w], of_v[w])) continue;
      // Where w lies above v it lies above u, and otherwise below v as it lies below u. (With both,
      // there is a cycle.)
      const bool above = of_v[w] == Trail::kBelow;
      const Half implied = above ? model_.arc_of(u, w) : model_.arc_of(w, v);
      if (!raise(implied, 1, {Rule::kTransitive, 0, above ? v : u}, conflict)) return false;
    }
  }
  return true;
}

}  // namespace memplan::prover
