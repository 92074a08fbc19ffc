#include "exact/pairs.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "exact/pair_propagation.h"
#include "exact/pair_relations.h"
#include "model/answers.h"
#include "model/items.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// The lowest legal offset of i that every placed neighbour allows; latest + 1 if there is none.
// Each step skips only forbidden offsets, so that the result is the lowest one.
Bytes lowest_place(const Items& items, const Relations& relations, ItemIdx i,
                   const std::vector<Bytes>& offset) {
  Bytes at = items.earliest[i];
  for (bool moved = true; moved && at <= items.latest[i];) {
    moved = false;
    for (const std::int32_t index : relations.of_item[i]) {
      const Relation& r = relations.all[index];
      const bool is_j = r.j == i;
      const Bytes other = offset[is_j ? r.i : r.j];
      if (other == kNoOffset) continue;
      const Bytes difference = is_j ? at - other : other - at;
      const std::int32_t k = relations.range_at(r, difference);
      if (difference <= relations.allowed[k].to) continue;
      at = is_j ? other + relations.allowed[k + 1].from : other - relations.allowed[k].to;
      at = items.legal_above(i, at);
      moved = true;
      if (at > items.latest[i]) break;
    }
  }
  return at;
}

// Tries first fit, fixed items first and then the largest, since loose problems need no search.
bool first_fit(const Problem& problem, const Items& items, const Relations& relations,
               Stopper& stopper, std::vector<Bytes>* offset) {
  std::vector<double> area(items.size.size());
  std::vector<ItemIdx> order(items.size.size());
  std::iota(order.begin(), order.end(), 0);
  for (const Part& part : items.parts) {
    const BufferIdx b = part.buffer;
    area[part.item] += static_cast<double>(part.size) * (static_cast<double>(problem.end[b]) -
                                                         static_cast<double>(problem.start[b]));
  }
  std::stable_sort(order.begin(), order.end(), [&](ItemIdx x, ItemIdx y) {
    const bool x_fixed = items.earliest[x] == items.latest[x];
    const bool y_fixed = items.earliest[y] == items.latest[y];
    return x_fixed != y_fixed ? x_fixed : area[x] > area[y];
  });
  offset->assign(items.size.size(), kNoOffset);
  for (const ItemIdx i : order) {
    const Bytes at = lowest_place(items, relations, i, *offset);
    // A place among thousands of relations takes so long that the clock must not be skipped, as
    // expired() does.
    if (at > items.latest[i] || stopper.look()) return false;
    (*offset)[i] = at;
  }
  return true;
}

// A relation that the lower bounds break. Its ranges up to `split` or those after it must hold.
struct PairChoice {
  std::int32_t relation = -1;
  std::int32_t split = 0;
  bool above_first = false;  // try the ranges after the split first
};

// A choice on the stack, with the state that it was made in.
struct PairFrame {
  PairChoice choice;
  Propagation::Mark mark;
  bool second = false;  // the first alternative has failed
};

enum class PairVerdict { kSolved, kExhausted, kCutShort };

// Depth first over choices. Only broken relations are branched on: once the lower bounds break
// none, they are a plan (see Propagation::fixpoint).
class PairSearch {
 public:
  PairSearch(const Items& items, const Relations& relations, std::int64_t node_budget,
             Stopper& stopper)
      : relations_(relations),
        bounds_(items, relations, stopper),
        node_budget_(node_budget),
        stopper_(stopper) {}

  bool root() { return bounds_.fixpoint(); }
  PairVerdict run(const std::vector<ItemIdx>& part);

  std::int64_t nodes() const { return nodes_; }
  bool gave_up() const { return bounds_.gave_up(); }
  Bytes offset(ItemIdx i) const { return bounds_.lower(i); }

 private:
  PairChoice most_constrained() const;
  void take(const PairFrame& frame);
  bool next_alternative();

  const Relations& relations_;
  Propagation bounds_;
  const std::int64_t node_budget_;
  Stopper& stopper_;
  std::vector<std::int32_t> part_;  // the relations of one independent part
  std::vector<PairFrame> frames_;
  std::int64_t nodes_ = 0;
};

// A node is a fixpoint of bounds and ranges. If the least offsets break no relation, they are a
// plan. Otherwise one broken relation is split at the difference that the offsets have: its ranges
// up to there, or those after it. One of the two holds in every plan, and each closes a range, so
// that the search ends. The first alternative is the one that leaves more room.
PairVerdict PairSearch::run(const std::vector<ItemIdx>& part) {
  part_.clear();
  for (const ItemIdx i : part) {
    for (const std::int32_t r : relations_.of_item[i]) {
      if (relations_.all[r].i == i) part_.push_back(r);
    }
  }
  frames_.clear();  // decisions of other parts stay, since they cannot matter here
  for (;;) {
    if (nodes_ >= node_budget_ || stopper_.look()) return PairVerdict::kCutShort;
    ++nodes_;
    const PairChoice choice = most_constrained();
    if (choice.relation < 0) return PairVerdict::kSolved;
    MEMPLAN_ASSERT(bounds_.check_invariants());
    frames_.push_back({choice, bounds_.mark()});
    take(frames_.back());
    while (!bounds_.fixpoint()) {
      if (stopper_.stopped()) return PairVerdict::kCutShort;
      if (!next_alternative()) return PairVerdict::kExhausted;
    }
  }
}

void PairSearch::take(const PairFrame& frame) {
  const PairChoice& c = frame.choice;
  if (c.above_first != frame.second) {
    bounds_.restrict(c.relation, c.split + 1, bounds_.last(c.relation));
  } else {
    bounds_.restrict(c.relation, bounds_.first(c.relation), c.split);
  }
}

bool PairSearch::next_alternative() {
  for (; !frames_.empty(); frames_.pop_back()) {
    PairFrame& frame = frames_.back();
    bounds_.undo(frame.mark);
    if (frame.second) continue;
    frame.second = true;
    take(frame);
    return true;
  }
  return false;
}

// The broken relation with the least room in its worse alternative, and then in its better one;
// the alternative that leaves more room comes first. Room is what the item that must rise has
// left below its upper bound when it has risen.
PairChoice PairSearch::most_constrained() const {
  PairChoice best;
  Bytes best_worse = 0;
  Bytes best_better = 0;
  for (const std::int32_t index : part_) {
    const std::int32_t last = bounds_.last(index);
    if (bounds_.first(index) == last) continue;
    const Relation& r = relations_.all[index];
    const Bytes difference = bounds_.lower(r.j) - bounds_.lower(r.i);
    const std::int32_t split = relations_.range_at(r, difference);
    if (difference <= relations_.allowed[split].to) continue;
    const Bytes below = bounds_.upper(r.i) - (bounds_.lower(r.j) - relations_.allowed[split].to);
    const Bytes above =
        bounds_.upper(r.j) - (bounds_.lower(r.i) + relations_.allowed[split + 1].from);
    MEMPLAN_ASSERT(split >= bounds_.first(index) && split < last);
    const Bytes worse = std::min(below, above);
    const Bytes better = std::max(below, above);
    if (best.relation >= 0 && (worse != best_worse ? worse > best_worse : better >= best_better)) {
      continue;
    }
    best = {index, split, above > below};
    best_worse = worse;
    best_better = better;
  }
  return best;
}

Plan undecided(const PairSearch& search, const Stopper& stopper) {
  const bool creep = search.gave_up() && !stopper.stopped();
  return memplan::unknown(creep ? "bounds creep too slowly for a proof" : "the budget ran out");
}

// A part without a solution refutes the whole problem.
Plan search_parts(const Problem& problem, const Items& items, const Relations& relations,
                  std::int64_t node_budget, Stopper& stopper) {
  PairSearch search(items, relations, node_budget, stopper);
  if (!search.root()) {
    if (search.gave_up()) return undecided(search, stopper);
    std::vector<BufferIdx> all;
    for (const Part& part : items.parts) all.push_back(part.buffer);
    std::sort(all.begin(), all.end());
    return infeasible(std::move(all), "bounds alone leave no solution");
  }
  Plan plan;
  PairVerdict verdict = PairVerdict::kSolved;
  for (const std::vector<ItemIdx>& part : relations.parts()) {
    verdict = search.run(part);
    if (verdict == PairVerdict::kExhausted && !search.gave_up()) {
      plan = infeasible(buffers_of(items, part), "the search over pairs is exhausted");
    } else if (verdict != PairVerdict::kSolved) {
      plan = undecided(search, stopper);
    }
    if (verdict != PairVerdict::kSolved) break;
  }
  if (verdict == PairVerdict::kSolved) {
    std::vector<Bytes> offsets;
    for (ItemIdx i = 0; i < items.count(); ++i) offsets.push_back(search.offset(i));
    plan = plan_of(problem, items, offsets, "the search over pairs found a solution");
  }
  plan.stats.nodes = search.nodes();
  plan.stats.restarts = 1;
  return plan;
}

Plan answer_by_pairs(const Problem& problem, const Items& items, std::int64_t node_budget,
                     Stopper& stopper) {
  if (std::optional<Plan> none = refuted_at_once(items)) return *std::move(none);
  Relations relations;
  const char* refusal = relations.build(items, stopper);
  MEMPLAN_ASSERT(refusal != nullptr || relations.check_invariants());
  if (refusal != nullptr) return memplan::unknown(refusal);
  std::vector<Bytes> offset;
  if (first_fit(problem, items, relations, stopper, &offset)) {
    return plan_of(problem, items, offset, "first fit");
  }
  return search_parts(problem, items, relations, node_budget, stopper);
}

}  // namespace

Plan pairs_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               std::int64_t node_budget, Stopper& stopper) {
  const Items items = make_items(problem, sections, capacity);
  return found_by("pairs", answer_by_pairs(problem, items, node_budget, stopper));
}

}  // namespace memplan
