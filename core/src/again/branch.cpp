#include "again/branch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

namespace memplan::again {

namespace {

constexpr int kMostPrices = 40;
constexpr std::int64_t kMorePrice = 8;  // how much a price grows at once, until enough is dropped

std::int64_t rounded_up(std::int64_t value, std::int32_t scale) {
  const std::int64_t unit = std::int64_t{1} << scale;
  return value <= 0 ? 0 : (value - 1) / unit + 1;
}

// Finds the best price of one case.
//
// The least of the cut over all sides is a concave function of the price, as each side is a line:
// its cost, and its excess as the slope. So the best price is between a side that keeps too much
// and one that does not. The two lines meet at the only price at which another side may be below
// both; if none is, the function has its peak there, else its line replaces one of the two. The
// price moves in whole numbers, and each try leaves a smaller range, so that the loop ends.
class PriceSearch {
 public:
  PriceSearch(const Model& model, const CutNetwork& network, const Scaling& scaling, Bytes capacity,
              Counter& counter, Pick& pick, std::int64_t first_price)
      : model_(model),
        network_(network),
        scaling_(scaling),
        capacity_(capacity),
        counter_(counter),
        pick_(pick),
        first_price_(std::max<std::int64_t>(first_price, 1)) {}

  // Ends early if the bound is `enough`.
  void run(Case& of, std::int64_t enough) {
    low_ = solve(0, nullptr, of);
    if (low_->side.excess <= 0) return;
    if (!find_high(of, enough)) return;
    for (int tries = 0; tries < kMostPrices && !counter_.is_over(); ++tries) {
      const std::int64_t price = meeting_price();
      if (price <= low_->side.price || price >= high_->side.price) break;
      CutNetwork::Solved middle = solve(price, &*low_, of);
      if (of.bound >= enough) return;
      const bool is_same =
          is_same_line(middle.side, low_->side) || is_same_line(middle.side, high_->side);
      (middle.side.excess > 0 ? low_ : high_) = std::move(middle);
      if (is_same) break;
    }
    choose(of);
  }

 private:
  CutNetwork::Solved solve(std::int64_t price, const CutNetwork::Solved* below, Case& of) {
    counter_.take();
    CutNetwork::Solved solved = network_.solve(price, capacity_, below);
    const std::int64_t bound = rounded_up(solved.side.value, scaling_.scale);
    if (bound > of.bound || of.price < 0) {
      of.bound = std::max(of.bound, bound);
      of.price = price;
    }
    const std::int64_t cost = solved.side.cost >> scaling_.scale;
    const bool is_possible = solved.amount < std::int64_t{1} << 59;
    if (is_possible && solved.side.excess <= 0 && (pick_.done.empty() || cost < pick_.cost)) {
      pick_ = {cost, solved.side.again, solved.side.done};
    }
    return solved;
  }

  static bool is_same_line(const CutSide& a, const CutSide& b) {
    return a.cost == b.cost && a.excess == b.excess;
  }

  bool find_high(Case& of, std::int64_t enough) {
    std::int64_t price = first_price_;
    while (true) {
      price = std::min(std::max(price, low_->side.price + 1), scaling_.highest_price);
      CutNetwork::Solved solved = solve(price, &*low_, of);
      if (of.bound >= enough) return false;
      if (solved.side.excess <= 0) {
        high_ = std::move(solved);
        return true;
      }
      low_ = std::move(solved);
      if (price == scaling_.highest_price || counter_.is_over()) return false;
      price =
          price > scaling_.highest_price / kMorePrice ? scaling_.highest_price : price * kMorePrice;
    }
  }

  // Where the lines of the two sides meet. Any price between would be right, so that a rounded
  // quotient does no harm; a quotient of two numbers is rounded in the same way on all machines.
  std::int64_t meeting_price() const {
    const auto costs = static_cast<double>(high_->side.cost - low_->side.cost);
    const auto bytes = static_cast<double>(low_->side.excess - high_->side.excess);
    const double price = std::ldexp(costs / bytes, scaling_.shift);
    const double most = static_cast<double>(scaling_.highest_price);
    return price >= most ? scaling_.highest_price : static_cast<std::int64_t>(price);
  }

  // What the two sides do not agree on, and would cost most: it is undecided whether it runs again
  // or is moved, or, if that is decided, whether it runs before the moment.
  void choose(Case& of) const {
    std::vector<std::uint8_t> decided(model_.again.size(), 0);
    for (const Decision& decision : of.decisions) {
      const bool is_about_again =
          decision.choice == RunChoice::kAgain || decision.choice == RunChoice::kNotAgain;
      if (is_about_again) decided[decision.op] = 1;
    }
    double most = -1;
    for (OperatorIdx k = 0; k < model_.runs(); ++k) {
      if (low_->side.again[k] == high_->side.again[k] || decided[k] != 0) continue;
      const double worth = worth_of(k, of.price);
      if (worth <= most) continue;
      most = worth;
      of.next = {k, RunChoice::kAgain};
    }
    for (OperatorIdx u = 0; u < model_.operators() && of.next.op < 0; ++u) {
      if (low_->side.done[u] == high_->side.done[u] || !network_.is_open(u)) continue;
      of.next = {u, RunChoice::kBefore};
    }
  }

  double worth_of(OperatorIdx k, std::int64_t price) const {
    Bytes bytes = 0;
    for (const StorageIdx s : model_.makes[k]) bytes += model_.size[s];
    const std::int64_t kept = price_of(price, bytes, scaling_.shift);
    return static_cast<double>(std::min(model_.cost[k] << scaling_.scale, kept));
  }

  const Model& model_;
  const CutNetwork& network_;
  const Scaling& scaling_;
  Bytes capacity_;
  Counter& counter_;
  Pick& pick_;
  std::int64_t first_price_;
  std::optional<CutNetwork::Solved> low_;
  std::optional<CutNetwork::Solved> high_;
};

// A price at which all bytes of the capacity cost as much as all re-runs.
std::int64_t usual_price(const Model& model, const Scaling& scaling, Bytes capacity) {
  const double cost = std::ldexp(static_cast<double>(model.total), scaling.scale);
  const double price =
      std::ldexp(cost / static_cast<double>(std::max<Bytes>(capacity, 1)), scaling.shift);
  const double most = static_cast<double>(scaling.highest_price);
  return price >= most ? scaling.highest_price : static_cast<std::int64_t>(price);
}

RunChoice other_choice(RunChoice choice) {
  return choice == RunChoice::kAgain ? RunChoice::kNotAgain : RunChoice::kAfter;
}

}  // namespace

Branched bound_root(const Model& model, CutNetwork& network, const Scaling& scaling, Bytes capacity,
                    std::int64_t enough, Counter& counter) {
  Branched root;
  Case whole;
  whole.price = -1;
  whole.next.op = kNoOperator;
  network.decide({});
  PriceSearch search(model, network, scaling, capacity, counter, root.best,
                     usual_price(model, scaling, capacity));
  search.run(whole, enough);
  root.bound = whole.bound;
  root.leaves.push_back(std::move(whole));
  return root;
}

// Best first: the case with the least bound is divided, as only it can raise the bound. A case is
// closed if its bound is not below the cost of a solution of the whole moment, or is enough: no
// other solution of it can lower the answer. All closed cases stay leaves of the proof. A child
// inherits the bound of its parent, of which it is a part, and starts at its price.
void branch(const Model& model, CutNetwork& network, const Scaling& scaling, Bytes capacity,
            std::int64_t enough, std::size_t most_cases, Counter& counter, Branched& root) {
  struct Open {
    std::int64_t bound;
    std::size_t at;
    bool operator<(const Open& other) const {
      return bound != other.bound ? bound > other.bound : at > other.at;
    }
  };
  std::vector<Case>& leaves = root.leaves;
  std::priority_queue<Open> open;
  for (std::size_t i = 0; i < leaves.size(); ++i) open.push({leaves[i].bound, i});
  const auto limit = [&] {
    return root.best.done.empty() ? enough : std::min(enough, root.best.cost);
  };
  while (!open.empty() && leaves.size() < most_cases && !counter.is_over()) {
    const Open least = open.top();
    if (least.bound >= limit() || leaves[least.at].next.op == kNoOperator) break;
    open.pop();
    const Case parent = leaves[least.at];
    for (const RunChoice choice : {parent.next.choice, other_choice(parent.next.choice)}) {
      Case child = parent;
      child.decisions.push_back({parent.next.op, choice});
      child.next.op = kNoOperator;
      network.decide(child.decisions);
      PriceSearch search(model, network, scaling, capacity, counter, root.best, parent.price);
      search.run(child, limit());
      const std::size_t at = choice == parent.next.choice ? least.at : leaves.size();
      open.push({child.bound, at});
      if (at == leaves.size()) {
        leaves.push_back(std::move(child));
      } else {
        leaves[at] = std::move(child);
      }
    }
  }
  root.bound = std::numeric_limits<std::int64_t>::max();
  for (const Case& leaf : leaves) root.bound = std::min(root.bound, leaf.bound);
}

RecomputeProof make_proof(const Model& model, CutNetwork& network, const Scaling& scaling,
                          Bytes capacity, OperatorIdx op, const std::vector<Case>& leaves) {
  RecomputeProof proof;
  proof.op = op;
  proof.unit = model.unit;
  proof.scale = scaling.scale;
  proof.shift = scaling.shift;
  for (const Case& leaf : leaves) {
    network.decide(leaf.decisions);
    const CutNetwork::Solved solved = network.solve(leaf.price, capacity);
    proof.leaves.push_back({leaf.decisions, leaf.price, network.named(solved.flow)});
  }
  return proof;
}

}  // namespace memplan::again
