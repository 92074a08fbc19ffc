#include "apart/search.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "apart/cover.h"
#include "apart/oracle.h"
#include "apart/rows.h"
#include "apart/slots.h"

namespace memplan::apart {

namespace {

constexpr std::int64_t kNodesOfFit = 1000000;  // of one question to the planner
constexpr std::int64_t kNodesOfKeep = 2000;    // of one question of the greedy plan
constexpr std::int64_t kSlotsPercent = 15;  // of all pairs need a penalty, so that slots are tried

// With more pairs, rows and cores bound less than prices of rows do, and take longer.
constexpr std::size_t kMostPairs = 1000;

class Search {
 public:
  Search(const Model& model, std::int64_t floor, std::int64_t limit, std::uint64_t seed,
         Counter& counter)
      : model_(model), counter_(counter), oracle_(model, seed, counter) {
    found_.cost = limit;
    found_.bound = floor;
    all_ = all_but(model, {});
  }

  Found run() {
    if (begin() && !fill() && !is_over() && all_.size() <= kMostPairs) loop();
    return std::move(found_);
  }

 private:
  bool is_over() { return found_.is_proved() || counter_.is_spent(); }

  void raise(std::int64_t bound) {
    found_.bound = std::max(found_.bound, std::min(bound, found_.cost));
  }

  void take(const std::vector<Bytes>& offsets) {
    const std::int64_t cost = cost_of(model_, met_pairs(model_, offsets));
    if (cost >= found_.cost) return;
    found_.cost = cost;
    found_.offsets = offsets;
  }

  // All pairs apart, or else none of them; returns whether there is anything left to look for.
  bool begin() {
    const Plan apart = oracle_.fit(all_, kNodesOfFit);
    if (apart.has_offsets()) {
      take(apart.offsets);
      raise(found_.cost);
      return false;
    }
    const Plan plan = all_.empty() ? apart : oracle_.fit({}, counter_.left());
    if (plan.has_offsets()) {
      start_ = plan.offsets;
      take(start_);
      return true;
    }
    if (plan.status == Status::kInfeasible) {
      found_.bound = found_.cost;
      found_.is_infeasible = true;
      found_.conflict = plan.conflict;
    }
    return false;
  }

  // Whether slots gave the answer.
  bool fill() {
    const auto n = static_cast<std::int64_t>(model_.count());
    const auto pairs = static_cast<std::int64_t>(all_.size());
    if (pairs * 200 <= n * (n - 1) * kSlotsPercent) return false;
    Counter slots(counter_.left() / 10 * 9, counter_.stopper());
    const std::optional<Slotted> slotted = fill_slots(model_, found_.cost, slots);
    counter_.take(slots.used());
    if (!slotted) return false;
    if (!slotted->offsets.empty()) take(slotted->offsets);
    raise(slotted->bound);
    return found_.is_proved();
  }

  void loop() {
    bool is_first = true;
    while (!is_over()) {
      Counter covers(counter_.left() / 4, counter_.stopper());
      const Cover cover = cheapest_cover(model_, rows_, found_.cost, covers);
      counter_.take(covers.used());
      raise(cover.bound);
      if (!cover.is_found || is_over()) return;
      if (add_cliques(cover.pairs)) continue;
      if (std::exchange(is_first, false)) {
        keep_apart(cover.pairs);
        if (is_over()) return;
      }
      if (!add_cores(cover.pairs)) return;
    }
  }

  // Adds the rows of heavy cliques that the pairs of a cover violate; returns whether there are
  // any.
  bool add_cliques(const Chosen& met) {
    bool is_new = false;
    for (const Clique& clique : find_cliques(model_, met, counter_)) {
      Row row = load_row(model_, clique);
      std::int64_t has = 0;
      for (const Term& term : row.terms) {
        if (std::binary_search(met.begin(), met.end(), term.pair)) has += term.amount;
      }
      if (has >= row.need) continue;
      rows_.push_back(std::move(row));
      is_new = true;
    }
    return is_new;
  }

  // Adds disjoint sets of pairs of which one has to meet, until the planner finds a plan; returns
  // whether it did, or a set was found at all.
  bool add_cores(Chosen met) {
    const std::size_t before = rows_.size();
    while (!is_over()) {
      const Chosen apart = all_but(model_, met);
      const Plan plan = oracle_.fit(apart, kNodesOfFit);
      if (plan.has_offsets()) {
        take(plan.offsets);
        return rows_.size() > before || found_.is_proved();
      }
      if (plan.status != Status::kInfeasible) return false;
      const Chosen core = oracle_.shrink(apart, plan.conflict);
      rows_.push_back(core_row(core));
      Chosen more;
      std::set_union(met.begin(), met.end(), core.begin(), core.end(), std::back_inserter(more));
      met = std::move(more);
    }
    return true;
  }

  // A plan that keeps pairs apart one after the other, in halves, as long as the planner finds one:
  // those first that a cover keeps apart, and dear ones.
  void keep_apart(const Chosen& met) {
    kept_.clear();
    current_ = start_;
    Chosen order = all_;
    std::stable_sort(order.begin(), order.end(), [&](PairIdx a, PairIdx b) {
      const bool has_a = std::binary_search(met.begin(), met.end(), a);
      const bool has_b = std::binary_search(met.begin(), met.end(), b);
      if (has_a != has_b) return has_b;
      return model_.pairs[a].cost > model_.pairs[b].cost;
    });
    keep(order, 0, order.size());
    take(current_);
  }

  void keep(const Chosen& order, std::size_t from, std::size_t to) {
    if (from == to || counter_.is_spent()) return;
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(to);
    Chosen more = kept_;
    more.insert(more.end(), first, last);
    const bool is_met = std::any_of(first, last, [this](PairIdx k) {
      return meet(model_.problem, current_, model_.pairs[k].first, model_.pairs[k].second);
    });
    if (is_met) {
      const Plan plan = oracle_.fit(more, kNodesOfKeep);
      if (!plan.has_offsets()) {
        if (to - from == 1) return;
        const std::size_t middle = from + (to - from) / 2;
        keep(order, from, middle);
        keep(order, middle, to);
        return;
      }
      current_ = plan.offsets;
    }
    kept_ = std::move(more);
  }

  const Model& model_;
  Counter& counter_;
  Oracle oracle_;
  Chosen all_;
  Found found_;
  std::vector<Bytes> start_;  // a plan with no pair kept apart
  std::vector<Row> rows_;
  Chosen kept_;                 // by the greedy plan
  std::vector<Bytes> current_;  // the greedy plan
};

}  // namespace

Found search(const Model& model, std::int64_t floor, std::int64_t limit, std::uint64_t seed,
             Counter& counter) {
  return Search(model, floor, limit, seed, counter).run();
}

}  // namespace memplan::apart
