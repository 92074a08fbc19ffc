#include "prover/propagation.h"

#include <algorithm>

namespace memplan::prover {

Propagator::Propagator(const Model& model, const ProverOptions& options, Trail& trail,
                       Clauses& clauses)
    : model_(model),
      options_(options),
      trail_(trail),
      clauses_(clauses),
      cliques_(model, options, trail),
      cuts_(model, trail) {}

void Propagator::forget() {
  next_ = std::min(next_, trail_.size());
  cliques_.forget();
  cuts_.forget();
}

void Propagator::narrow() {
  for (int i = 0; i < model_.items; ++i) cuts_.touch(i);
}

// Cheap rules first: the dear ones only ever see a fixpoint of the others.
bool Propagator::propagate(Conflict* conflict) {
  for (;;) {
    while (next_ < trail_.size()) {
      if (!visit(next_++, conflict)) return false;
    }
    if (options_.cuts && !cuts_.propagate(conflict)) return false;
    if (next_ < trail_.size()) continue;
    if (options_.set_bounds && !cliques_.propagate_sets(conflict)) return false;
    if (next_ < trail_.size()) continue;
    if ((options_.overload || options_.edge_finding) && !cliques_.propagate_windows(conflict)) {
      return false;
    }
    if (next_ == trail_.size()) return true;
  }
}

bool Propagator::visit(std::int32_t position, Conflict* conflict) {
  const Half h = trail_[position].half;
  const Bytes old = trail_[position].previous < 0 ? trail_[position].value - 1
                                                  : trail_[trail_[position].previous].value;
  if (!clauses_.propagate(h, old, conflict)) return false;
  if (!model_.is_item(h)) {
    if (trail_.bound(h) <= 0) return true;  // the root entry
    return settle(h, conflict) && (!options_.transitivity || close(h, conflict));
  }
  cliques_.touch(h, old);
  // A later rise of the same half will say all that this one would.
  return !trail_.is_last(position) || push(h, conflict);
}

bool Propagator::raise(Half h, Bytes value, Reason reason, Conflict* conflict) {
  if (trail_.raise(h, value, reason)) return true;
  *conflict = {Conflict::Kind::kCrossed, h};
  return false;
}

// An item has risen. What lies after it rises, too; and what would now begin too late for it to
// lie before lies before it.
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
      if (!raise(other, top, {Rule::kBefore, direction, item}, conflict)) return false;
      cliques_.touch_set(other, since);
    } else if (r == Trail::kOpen) {
      if (top + trail_.bound(2 * *v + (direction ^ 1)) + model_.size[*v] <= 0) continue;
      const Half a = model_.arc_of(*v, item) ^ direction;
      if (!raise(a, 1, {Rule::kTooLate, direction, -1}, conflict)) return false;
    }
  }
  return true;
}

// An arc was decided: its head rises above its tail, and its tail sinks below its head.
bool Propagator::settle(Half a, Conflict* conflict) {
  if (options_.cuts) {
    cuts_.touch(model_.tail_of(a));
    cuts_.touch(model_.head_of(a));
  }
  const int ends[2] = {model_.tail_of(a), model_.head_of(a)};
  for (const std::uint8_t direction : {std::uint8_t{0}, std::uint8_t{1}}) {
    const int first = ends[direction], second = ends[direction ^ 1];
    const Bytes top = trail_.bound(2 * first + direction) + model_.size[first];
    const Half h = 2 * second + direction;
    if (!raise(h, top, {Rule::kBefore, direction, first}, conflict)) return false;
    cliques_.touch_set(h);
  }
  return true;
}

// If u lies below v and v below w, u lies below w. Bounds imply it only at the end of a long climb.
bool Propagator::close(Half a, Conflict* conflict) {
  const int u = model_.tail_of(a), v = model_.head_of(a);
  const std::int8_t* const of_u = trail_.relations(u);
  const std::int8_t* const of_v = trail_.relations(v);
  steps_ += model_.neighbours.size(v);
  for (const auto* w = model_.neighbours.first(v); w != model_.neighbours.last(v); ++w) {
    if (of_v[*w] == Trail::kBelow && of_u[*w] == Trail::kOpen) {
      if (!raise(model_.arc_of(u, *w), 1, {Rule::kTransitive, 0, v}, conflict)) return false;
    } else if (of_u[*w] == Trail::kAbove && of_v[*w] == Trail::kOpen) {
      if (!raise(model_.arc_of(*w, v), 1, {Rule::kTransitive, 0, u}, conflict)) return false;
    } else if (of_v[*w] == Trail::kBelow && of_u[*w] == Trail::kAbove) {
      // Both were decided at once: a cycle.
      if (!raise(model_.arc_of(u, *w), 1, {Rule::kTransitive, 0, v}, conflict)) return false;
    }
  }
  return true;
}

}  // namespace memplan::prover
