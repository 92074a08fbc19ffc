#include "memplan/apart.h"

#include <algorithm>
#include <utility>

#include "apart/model.h"
#include "apart/oracle.h"
#include "apart/prices.h"
#include "apart/ruin.h"
#include "apart/search.h"
#include "memplan/bounds.h"
#include "memplan/sections.h"
#include "model/counter.h"
#include "model/items.h"
#include "util/failure.h"

namespace memplan {

namespace apart {

namespace {

// Shares of the budget that is left, in percent.
constexpr int kOfSearch = 60;
constexpr int kOfPrices = 10;
constexpr int kOfRuin = 28;
constexpr int kOfLowest = 40;
constexpr int kMostProbes = 40;
constexpr std::int64_t kNodesOfLowest = 200000;  // one of the planner may take many microseconds
constexpr std::int64_t kNodesOfOpen = 100;       // the same if a cheaper plan may be found

class ApartSearch {
 public:
  ApartSearch(const Problem& problem, const std::vector<Penalty>& penalties,
              const ApartOptions& options)
      : problem_(problem),
        penalties_(penalties),
        options_(options),
        model_(make_model(problem, penalties)),
        clock_(options.budget.seconds, options.interrupt),
        nodes_left_(options.budget.nodes) {}

  ApartResult run() {
    within(kOfSearch, [this](Counter& counter) {
      found_ = search(model_, 0, model_.total + 1, options_.seed, counter);
    });
    if (found_.offsets.empty()) return without_plan();
    if (!found_.is_proved()) improve();
    offsets_ = found_.offsets;
    lower();
    return finish();
  }

 private:
  // Runs a search with a part of what is left of the budget.
  template <typename Work>
  void within(int percent, Work work) {
    const double seconds = (options_.budget.seconds - clock_.elapsed()) * percent / 100;
    Stopper stopper(seconds, options_.interrupt);
    Counter counter(nodes_left_ / 100 * percent + 1, stopper);
    if (is_interrupted_) return;
    work(counter);
    nodes_left_ = std::max<std::int64_t>(0, nodes_left_ - counter.used());
    nodes_ += counter.used();
    is_interrupted_ = is_interrupted_ || stopper.interrupted();
  }

  // What the search left open: a bound by prices, and cheaper plans by chance.
  void improve() {
    within(kOfPrices, [this](Counter& counter) {
      found_.bound =
          std::max(found_.bound, bound_by_prices(model_, found_.cost, options_.seed, counter));
    });
    within(kOfRuin, [this](Counter& counter) {
      const std::vector<Bytes> offsets =
          ruin_and_recreate(model_, found_.offsets, options_.seed, counter);
      const std::int64_t cost = cost_of(model_, met_pairs(model_, offsets));
      if (cost >= found_.cost) return;
      found_.cost = cost;
      found_.offsets = offsets;
    });
  }

  Bytes peak() const { return peak_of(problem_, offsets_); }

  // The smallest peak with the pairs of a plan apart that are apart in it.
  void lower_within(const std::vector<Bytes>& offsets) {
    within(kOfLowest, [&](Counter& counter) {
      Oracle oracle(model_, options_.seed, counter);
      const Chosen apart = all_but(model_, met_pairs(model_, offsets));
      const std::int64_t nodes = found_.is_proved() ? kNodesOfLowest : kNodesOfOpen;
      const Plan plan = oracle.lowest(apart, nodes);
      if (plan.has_offsets() && plan.peak < peak()) offsets_ = plan.offsets;
      if (found_.cost == 0) peak_bound_ = std::max(peak_bound_, plan.lower_bound);
    });
  }

  // Asks for a plan as cheap with at most this peak; returns whether that is settled.
  bool probe(Bytes target) {
    bool is_settled = false;
    Found below;
    within(kOfLowest, [&](Counter& counter) {
      Model model = model_;
      model.set_capacity(target);
      below = search(model, found_.bound, found_.cost + 1, options_.seed, counter);
      is_settled = below.is_proved() || !below.offsets.empty();
    });
    if (!is_settled) return false;
    if (below.offsets.empty()) {
      peak_bound_ = std::max(peak_bound_, target + 1);
      return true;
    }
    offsets_ = below.offsets;
    found_.cost = below.cost;
    lower_within(below.offsets);
    return true;
  }

  // The smallest peak at this cost, and a bound on it.
  void lower() {
    peak_bound_ = lower_bound(problem_, sweep(problem_)).bytes;
    lower_within(found_.offsets);
    // The planner has proved what it can, or a cheaper plan is worth more than a lower one.
    if (found_.cost == 0 || !found_.is_proved()) return;
    Bytes open = 0;  // nothing is known of this target
    for (int k = 0; k < kMostProbes && peak_bound_ < peak() && nodes_left_ > 0; ++k) {
      const Bytes target = open == 0 ? peak() - 1 : peak_bound_ + (open - peak_bound_) / 2;
      if (!probe(target)) open = target;
      if (open != 0 && open <= peak_bound_) return;
    }
  }

  ApartResult without_plan() {
    ApartResult result;
    result.status = found_.is_infeasible ? Status::kInfeasible : Status::kUnknown;
    result.bound = found_.is_infeasible ? 0 : found_.bound * model_.unit + model_.fixed;
    result.conflict = found_.conflict;
    result.nodes = nodes_;
    result.interrupted = is_interrupted_;
    return result;
  }

  ApartResult finish() {
    ApartResult result;
    result.offsets = offsets_;
    result.cost = memplan::cost_of(problem_, penalties_, offsets_);
    result.bound = found_.bound * model_.unit + model_.fixed;
    result.status = result.bound == result.cost ? Status::kOptimal : Status::kFeasible;
    result.peak = peak();
    result.peak_bound = std::min(peak_bound_, result.peak);
    result.nodes = nodes_;
    result.interrupted = is_interrupted_;
    return result;
  }

  const Problem& problem_;
  const std::vector<Penalty>& penalties_;
  const ApartOptions& options_;
  Model model_;
  Stopper clock_;
  std::int64_t nodes_left_;
  std::int64_t nodes_ = 0;
  bool is_interrupted_ = false;
  Found found_;
  std::vector<Bytes> offsets_;  // of the plan: as cheap as that of found_, with a smaller peak
  Bytes peak_bound_ = 0;
};

}  // namespace

}  // namespace apart

ApartResult plan_apart(const Problem& problem, const std::vector<Penalty>& penalties,
                       const ApartOptions& options) {
  if (std::string wrong = check(problem, penalties); !wrong.empty()) {
    fail(wrong);
  }
  if (!problem.capacity) fail("a problem with penalties needs a capacity");
  return apart::ApartSearch(problem, penalties, options).run();
}

}  // namespace memplan
