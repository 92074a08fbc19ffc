#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/rectangles.h"
#include "model/answers.h"
#include "model/items.h"
#include "published/rectangles/distances.h"
#include "published/rectangles/geometry.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::int32_t kNoPair = -1;
constexpr std::size_t kMostChanges = std::size_t{1} << 25;  // 512 MiB
constexpr ItemIdx kWideRelation =
    256;  // items from which a scan of a row takes longer than reading the clock

// Relative placements: the search decides for one pair of buffers after another which of them lies
// below.
class RelativeSearch {
 public:
  RelativeSearch(const Rectangles& rectangles, const MetaCspOptions& options, Distances& distances,
                 Stopper& stopper);

  // Null, or why the pairs could not be listed.
  const char* build();

  // Once solved, the lower bounds of the distances are a plan: they are legal, each having been
  // rounded, and every pair is in order, so that they are a size apart.
  Outcome run(std::int64_t node_budget);

  std::int64_t nodes() const { return nodes_; }

 private:
  using PairIdx = std::int32_t;

  struct Decision {
    PairIdx pair;
    bool first_below;  // the value: which of the pair lies below
    bool last;         // no other value is left
    std::size_t next;
    std::size_t changes;
    std::size_t given;
  };

  void list_pairs_of(ItemIdx i, const std::vector<std::int32_t>& rank);
  bool start();
  bool decide(PairIdx pair);
  bool go_back();
  bool try_value(const Decision& decision);
  bool assign(PairIdx pair, bool first_below);
  bool late();
  bool propagate();
  bool round(ItemIdx i);
  bool narrow(PairIdx pair);
  bool pile_below(ItemIdx i);
  bool pile_above(ItemIdx i);
  PairIdx next_pair();

  Bytes size(ItemIdx i) const { return items_.size[i]; }
  bool lies_below(ItemIdx i, ItemIdx j) const { return distances_.least(i, j) >= size(i); }
  bool may_lie_below(ItemIdx i, ItemIdx j) const { return distances_.least(j, i) <= -size(i); }
  bool ordered(PairIdx pair) const;
  PairIdx pair_of(ItemIdx i, ItemIdx j) const { return pair_of_[i * items_.size.size() + j]; }
  bool top_and_bottom_are_alike() const;

  const Rectangles& rectangles_;
  const Items& items_;
  const MetaCspOptions options_;
  Distances& distances_;
  Stopper& stopper_;
  std::vector<std::pair<ItemIdx, ItemIdx>> pairs_;  // in the order of trial
  std::vector<PairIdx> pair_of_;                    // by items, or -1
  std::size_t next_ = 0;                            // pairs before it are in order
  std::vector<char> is_given_;                      // by pair: it has a value
  std::vector<PairIdx> given_;                      // in this order
  std::vector<Decision> decisions_;
  std::size_t seen_ = 0;  // changes of distances before it have been followed up
  std::int64_t nodes_ = 0;
  std::int64_t nodes_end_ = 0;
  bool cut_short_ = false;
};

}  // namespace

RelativeSearch::RelativeSearch(const Rectangles& rectangles, const MetaCspOptions& options,
                               Distances& distances, Stopper& stopper)
    : rectangles_(rectangles),
      items_(rectangles.items),
      options_(options),
      distances_(distances),
      stopper_(stopper) {}

// Orders the pairs: all of the largest buffer, then those of the next one that are left, and so on.
const char* RelativeSearch::build() {
  std::vector<ItemIdx> order(items_.size.size());
  std::iota(order.begin(), order.end(), 0);
  if (options_.area_order) {
    std::stable_sort(order.begin(), order.end(), [this](ItemIdx a, ItemIdx b) {
      return rectangles_.area[a] > rectangles_.area[b];
    });
  }
  std::vector<std::int32_t> rank(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<std::int32_t>(k);
  pair_of_.reserve(order.size() * order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (stopper_.look()) return "the budget ran out";
    pair_of_.resize(pair_of_.size() + order.size(), kNoPair);
  }
  for (const ItemIdx i : order) {
    if (stopper_.look()) return "the budget ran out";
    list_pairs_of(i, rank);
  }
  is_given_.assign(pairs_.size(), 0);
  return nullptr;
}

// Those with what comes behind it.
void RelativeSearch::list_pairs_of(ItemIdx i, const std::vector<std::int32_t>& rank) {
  const std::size_t begin = pairs_.size();
  for (const ItemIdx j : rectangles_.neighbours[i]) {
    if (rank[j] > rank[i]) pairs_.emplace_back(i, j);
  }
  std::sort(pairs_.begin() + static_cast<std::ptrdiff_t>(begin), pairs_.end(),
            [&rank](const auto& a, const auto& b) { return rank[a.second] < rank[b.second]; });
  for (std::size_t pair = begin; pair < pairs_.size(); ++pair) {
    const ItemIdx j = pairs_[pair].second;
    pair_of_[i * items_.size.size() + j] = static_cast<PairIdx>(pair);
    pair_of_[j * items_.size.size() + i] = static_cast<PairIdx>(pair);
  }
}

Outcome RelativeSearch::run(std::int64_t node_budget) {
  nodes_end_ = node_budget;
  for (bool consistent = start(); !cut_short_;) {
    if (!consistent) {
      while (!decisions_.empty() && decisions_.back().last) decisions_.pop_back();
      if (decisions_.empty()) return Outcome::kExhausted;
      consistent = go_back();
      continue;
    }
    MEMPLAN_ASSERT(distances_.check_invariants());
    MEMPLAN_ASSERT(given_.size() == pairs_.size() - static_cast<std::size_t>(std::count(
                                                        is_given_.begin(), is_given_.end(), 0)));
    const PairIdx pair = next_pair();
    if (pair == kNoPair) return Outcome::kSolved;
    consistent = decide(pair);
  }
  return Outcome::kCutShort;
}

// Infers what the bounds alone imply, before any pair has a value.
bool RelativeSearch::start() {
  for (PairIdx pair = 0; pair < static_cast<PairIdx>(pairs_.size()); ++pair) {
    if (options_.forward_checking && !narrow(pair)) return false;
  }
  return propagate();
}

// Takes the value that leaves the pair more room, or else puts the larger buffer below.
bool RelativeSearch::decide(PairIdx pair) {
  const auto [i, j] = pairs_[pair];
  const Bytes room_below = -distances_.least(j, i) - size(i);
  const Bytes room_above = -distances_.least(i, j) - size(j);
  const bool first_below = room_below != room_above ? room_below > room_above
                                                    : rectangles_.area[i] >= rectangles_.area[j];
  const bool last = options_.symmetry && decisions_.empty() && top_and_bottom_are_alike();
  decisions_.push_back({pair, first_below, last, next_, distances_.mark(), given_.size()});
  return try_value(decisions_.back());
}

// Gives the last pair decided its other value.
bool RelativeSearch::go_back() {
  Decision& decision = decisions_.back();
  MEMPLAN_ASSERT(!decision.last && decision.given <= given_.size());
  distances_.undo(decision.changes);
  for (; given_.size() > decision.given; given_.pop_back()) is_given_[given_.back()] = 0;
  next_ = decision.next;
  decision.first_below = !decision.first_below;
  decision.last = true;
  return try_value(decision);
}

bool RelativeSearch::try_value(const Decision& decision) {
  seen_ = distances_.mark();
  return assign(decision.pair, decision.first_below) && propagate();
}

bool RelativeSearch::assign(PairIdx pair, bool first_below) {
  if (nodes_ >= nodes_end_) cut_short_ = true;
  if (cut_short_ || late()) return false;
  ++nodes_;
  is_given_[pair] = 1;
  given_.push_back(pair);
  auto [low, high] = pairs_[pair];
  if (!first_below) std::swap(low, high);
  if (!distances_.add(low, high, size(low))) return false;
  return !options_.cliques || (pile_below(high) && pile_above(low));
}

bool RelativeSearch::late() {
  const bool late = items_.count() > kWideRelation ? stopper_.look() : stopper_.expired();
  if (late || distances_.mark() > kMostChanges) cut_short_ = true;
  return cut_short_;
}

// Propagates the changes until nothing changes.
bool RelativeSearch::propagate() {
  for (; seen_ < distances_.mark(); ++seen_) {
    const auto [from, to] = distances_.change(seen_);
    if (from == to) {
      if (late() || !round(from)) return false;
    }
    if (!options_.forward_checking) continue;
    if (from == to) {
      for (const ItemIdx j : rectangles_.neighbours[from]) {
        if (!narrow(pair_of(from, j))) return false;
      }
    } else if (pair_of(from, to) != kNoPair && !narrow(pair_of(from, to))) {
      return false;
    }
  }
  return true;
}

// Moves the bounds of an item to legal offsets.
bool RelativeSearch::round(ItemIdx i) {
  return distances_.raise(i, items_.legal_above(i, distances_.lower(i))) &&
         distances_.sink(i, items_.legal_below(i, distances_.upper(i)));
}

// Forward checking: a pair with no value left is a dead end, and one with a single value has it.
bool RelativeSearch::narrow(PairIdx pair) {
  if (ordered(pair)) return true;
  const auto [i, j] = pairs_[pair];
  const bool below = may_lie_below(i, j);
  const bool above = may_lie_below(j, i);
  if (below == above) return below;
  return !options_.fewest_first || assign(pair, below);
}

// Cliques of displacement: what shares a section is displaced from each other in the one dimension
// there is, so that it lies in a pile. Those of the section that are below i carry it.
bool RelativeSearch::pile_below(ItemIdx i) {
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    for (SectionIdx s = span->first; s <= span->last; ++s) {
      Bytes pile = 0;
      Bytes foot = items_.capacity;
      for (const ItemIdx j : rectangles_.in_section[s]) {
        if (j == i || !lies_below(j, i)) continue;
        pile += size(j);
        foot = std::min(foot, distances_.lower(j));
      }
      if (pile == 0) continue;
      if (pile > distances_.upper(i) - foot) return false;
      if (!distances_.raise(i, foot + pile)) return false;
    }
  }
  return true;
}

bool RelativeSearch::pile_above(ItemIdx i) {
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    for (SectionIdx s = span->first; s <= span->last; ++s) {
      Bytes pile = size(i);
      Bytes head = 0;
      for (const ItemIdx j : rectangles_.in_section[s]) {
        if (j == i || !lies_below(i, j)) continue;
        pile += size(j);
        head = std::max(head, distances_.upper(j) + size(j));
      }
      if (head == 0) continue;
      if (pile > head - distances_.lower(i)) return false;
      if (!distances_.sink(i, head - pile)) return false;
    }
  }
  return true;
}

RelativeSearch::PairIdx RelativeSearch::next_pair() {
  for (; next_ < pairs_.size(); ++next_) {
    const auto pair = static_cast<PairIdx>(next_);
    if (is_given_[pair] == 0 && !(options_.subsumption && ordered(pair))) return pair;
  }
  return kNoPair;
}

bool RelativeSearch::ordered(PairIdx pair) const {
  const auto [i, j] = pairs_[pair];
  return lies_below(i, j) || lies_below(j, i);
}

// Whether a plan upside down is a plan. The first pair then needs one of its values only.
bool RelativeSearch::top_and_bottom_are_alike() const {
  for (ItemIdx i = 0; i < items_.count(); ++i) {
    const bool free = items_.earliest[i] == 0 && items_.latest[i] == items_.capacity - size(i);
    if (!free || items_.alignment[i] != 1) return false;
  }
  return items_.reserved.empty();
}

namespace {

Plan place_relatively(const Problem& problem, const Items& items, const MetaCspOptions& options,
                      std::int64_t node_budget, Stopper& stopper) {
  Rectangles rectangles(items);
  if (const char* refusal = rectangles.build(problem, stopper)) return unknown(refusal);
  Distances distances;
  if (const char* refusal = distances.build(items, stopper)) return unknown(refusal);
  RelativeSearch search(rectangles, options, distances, stopper);
  if (const char* refusal = search.build()) return unknown(refusal);
  const Outcome outcome = search.run(node_budget);
  std::vector<Bytes> offsets;
  for (ItemIdx i = 0; i < items.count(); ++i) offsets.push_back(distances.lower(i));
  Plan plan = plan_of_outcome(outcome, problem, items, offsets, "the budget ran out");
  plan.stats.nodes = search.nodes();
  return plan;
}

}  // namespace

Plan meta_csp(const Problem& problem, const Sections& sections, Bytes capacity,
              const MetaCspOptions& options, std::int64_t node_budget, Stopper& stopper) {
  const Items items = make_items(problem, sections, capacity);
  std::optional<Plan> plan = refuted_at_once(items);
  if (!plan) plan = place_relatively(problem, items, options, node_budget, stopper);
  return found_by("meta_csp", *std::move(plan));
}

}  // namespace memplan
