#include "prover/clauses.h"

#include <algorithm>
#include <utility>

#include "util/invariants.h"

namespace memplan::prover {

Clauses::Clauses(const Model& model, Trail& trail)
    : model_(model), trail_(trail), watches_(model.halves()) {}

void Clauses::watch(Literal watched, Literal other, std::int32_t clause) {
  const Literal falsified = model_.negation(watched);
  watches_[falsified.half].push_back({falsified.value, other, clause});
}

std::int32_t Clauses::add(const std::vector<Literal>& literals, int glue, std::int64_t number) {
  MEMPLAN_ASSERT(literals.size() > 1 && glue > 0);
  const auto c = static_cast<std::int32_t>(clauses_.size());
  clauses_.push_back({number, static_cast<std::int32_t>(literals_.size()),
                      static_cast<std::int32_t>(literals.size()), glue, true});
  literals_.insert(literals_.end(), literals.begin(), literals.end());
  watch(literals[0], literals[1], c);
  watch(literals[1], literals[0], c);
  return c;
}

// Unit propagation with two watched literals (Chaff: Moskewicz and others 2001). The first two
// literals of a clause are watched: as long as both are open, or one holds, the clause has no
// consequence. When one becomes false, the clause looks for another literal that is not false and
// watches that. If there is none, the other watched literal must hold, or the clause is in
// conflict. Going back needs no work here, since literals that were open stay watched. The blocker
// is a literal that often holds; then the clause is not even looked at.
bool Clauses::propagate(Half h, Bytes old, Conflict* conflict) {
  std::vector<Watch>& list = watches_[h];
  const Bytes now = trail_.bound(h);
  const std::size_t count = list.size();
  steps_ += static_cast<std::int64_t>(count);
  std::size_t kept = 0;
  bool ok = true;
  for (std::size_t k = 0; k < count; ++k) {
    const Watch w = list[k];
    if (!ok || w.threshold > now || w.threshold <= old || trail_.holds(w.blocker)) {
      list[kept++] = w;
      continue;
    }
    steps_ += 4;
    Literal* const literals = literals_.data() + clauses_[w.clause].first;
    if (literals[0].half == (h ^ 1)) std::swap(literals[0], literals[1]);
    MEMPLAN_ASSERT(literals[1].half == (h ^ 1) && !trail_.holds(literals[1]));
    const Literal first = literals[0];
    if (trail_.holds(first)) {
      list[kept++] = {w.threshold, first, w.clause};
      continue;
    }
    const std::int32_t size = clauses_[w.clause].size;
    std::int32_t next = 2;
    while (next < size && trail_.holds(model_.negation(literals[next]))) ++next;
    if (next < size) {
      std::swap(literals[1], literals[next]);
      watch(literals[1], first, w.clause);  // in another list: a clause has a half only once
      continue;
    }
    list[kept++] = {w.threshold, first, w.clause};
    if (trail_.holds(model_.negation(first))) {
      *conflict = {Conflict::Kind::kClause, w.clause};
      ok = false;
    } else if (!trail_.raise(first.half, first.value, {Rule::kClause, 0, w.clause})) {
      *conflict = {Conflict::Kind::kCrossed, first.half};  // by the rounding to legal offsets
      ok = false;
    }
  }
  list.resize(kept);
  return ok;
}

bool Clauses::check_invariants() const {
  if (!kAssertions) return true;
  std::int32_t end_of_last = 0;
  std::vector<std::int32_t> last_seen(model_.halves(), -1);
  for (std::int32_t c = 0; c < learned(); ++c) {
    MEMPLAN_ASSERT(clauses_[c].first == end_of_last && clauses_[c].size > 1);
    for (const Literal* l = begin(c); l != end(c); ++l) {
      MEMPLAN_ASSERT(last_seen[l->half] != c);
      last_seen[l->half] = c;
    }
    end_of_last += clauses_[c].size;
  }
  MEMPLAN_ASSERT(end_of_last == static_cast<std::int32_t>(literals_.size()));
  std::size_t watches = 0;
  for (Half h = 0; h < model_.halves(); ++h) {
    for (const Watch& w : watches_[h]) {
      ++watches;
      MEMPLAN_ASSERT(w.clause >= 0 && w.clause < learned());
      const Literal* const l = begin(w.clause);
      MEMPLAN_ASSERT(l[0].half == (h ^ 1) || l[1].half == (h ^ 1));
      const Literal watched = l[0].half == (h ^ 1) ? l[0] : l[1];
      MEMPLAN_ASSERT(w.threshold == model_.negation(watched).value);
      MEMPLAN_ASSERT(std::any_of(l, end(w.clause), [&](const Literal& other) {
        return other.half == w.blocker.half && other.value == w.blocker.value;
      }));
    }
  }
  MEMPLAN_ASSERT(watches == 2 * clauses_.size());
  return true;
}

bool Clauses::is_settled() const {
  if (!kAssertions) return true;
  for (std::int32_t c = 0; c < learned(); ++c) {
    int open = 0;
    for (const Literal* l = begin(c); l != end(c) && open < 2; ++l) {
      if (trail_.holds(*l)) open = 2;
      if (!trail_.holds(model_.negation(*l))) ++open;
    }
    MEMPLAN_ASSERT(open >= 2);
  }
  return true;
}
// A clause is worth the more, the fewer levels its literals come from (glue, or the literal block
// distance of Audemard and Simon 2009), and if it was in a conflict since the last reduction.
// Reasons of bounds on the trail stay, and so does every clause of at most two levels.
void Clauses::reduce() {
  std::vector<bool> keep(clauses_.size(), false);
  for (std::int32_t p = 0; p < trail_.size(); ++p) {
    if (trail_[p].reason.rule == Rule::kClause) keep[trail_[p].reason.index] = true;
  }
  std::vector<std::pair<std::int32_t, std::int32_t>> order;  // (badness, clause)
  for (std::int32_t c = 0; c < learned(); ++c) {
    if (clauses_[c].glue <= 2) keep[c] = true;
    if (!keep[c]) order.emplace_back(2 * clauses_[c].glue - (clauses_[c].used ? 3 : 0), c);
    clauses_[c].used = false;
  }
  // Among equal clauses the younger one stays.
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  for (std::size_t k = 0; k < order.size() / 2; ++k) keep[order[k].second] = true;
  rebuild(keep);
}

// Moves the clauses that stay close together, and files them again. Watched literals stay in front.
void Clauses::rebuild(const std::vector<bool>& keep) {
  std::vector<std::int32_t> name(clauses_.size(), -1);
  std::vector<Clause> clauses;
  std::vector<Literal> literals;
  for (std::int32_t c = 0; c < learned(); ++c) {
    if (!keep[c]) continue;
    name[c] = static_cast<std::int32_t>(clauses.size());
    Clause clause = clauses_[c];
    clause.first = static_cast<std::int32_t>(literals.size());
    literals.insert(literals.end(), begin(c), end(c));
    clauses.push_back(clause);
  }
  for (std::vector<Watch>& list : watches_) {
    std::size_t kept = 0;
    for (Watch w : list) {
      if (!keep[w.clause]) continue;
      w.clause = name[w.clause];
      list[kept++] = w;
    }
    list.resize(kept);
  }
  trail_.rename_clauses(name);
  MEMPLAN_ASSERT(clauses.size() ==
                 static_cast<std::size_t>(std::count(keep.begin(), keep.end(), true)));
  clauses_ = std::move(clauses);
  literals_ = std::move(literals);
}

}  // namespace memplan::prover
