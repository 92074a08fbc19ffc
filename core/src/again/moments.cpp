#include "again/moments.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <utility>

#include "again/relaxation.h"

namespace memplan::again {

namespace {

constexpr std::size_t kMostMoments = 12;
constexpr std::size_t kMostColumns = 20000;
constexpr std::size_t kFewCases = 256;
constexpr std::size_t kTries = 2;  // of moments to add, with a few cases
constexpr std::size_t kManyCases = 4000;
constexpr std::size_t kMostNeeds = 2000000;  // of a proof
constexpr std::int64_t kSteps = 50;          // of the simplex method, which count as a node

// Of the program of some moments.
std::size_t columns_of(const Model& model, const std::vector<OperatorIdx>& moments) {
  const std::size_t each = model.cost.size() + model.size.size();
  return moments.size() * each;
}

// Branching, best first.
class Branching {
 public:
  Branching(const Relaxation& relaxation, std::int64_t enough, Counter& counter)
      : relaxation_(relaxation),
        enough_(enough),
        counter_(counter),
        simplex_(relaxation.program()),
        low_(relaxation.program().cost.size()),
        high_(relaxation.program().cost.size()) {}

  void run(std::size_t most_cases) {
    Node root;
    root.state = simplex_.state();
    solve(root);
    relaxation_.list_worst(simplex_, worst_);
    nodes_.push_back(std::move(root));
    struct Open {
      std::int64_t bound;
      std::size_t at;
      bool operator<(const Open& other) const {
        return bound != other.bound ? bound > other.bound : at > other.at;
      }
    };
    std::priority_queue<Open> open;
    open.push({nodes_[0].proved.bound, 0});
    std::size_t needs = nodes_[0].proved.needs.size();
    while (!open.empty() && nodes_.size() < most_cases && needs < kMostNeeds &&
           !counter_.is_over()) {
      const Open least = open.top();
      if (least.bound >= enough_ || nodes_[least.at].next < 0) break;
      open.pop();
      const Node parent = std::move(nodes_[least.at]);
      needs -= parent.proved.needs.size();
      for (const std::uint8_t choice : {std::uint8_t{0}, std::uint8_t{1}}) {
        Node child = parent;
        child.decisions.emplace_back(parent.next, choice);
        child.next = -1;
        solve(child);
        needs += child.proved.needs.size();
        const std::size_t at = choice == 0 ? least.at : nodes_.size();
        open.push({child.proved.bound, at});
        if (at == nodes_.size()) {
          nodes_.push_back(std::move(child));
        } else {
          nodes_[at] = std::move(child);
        }
      }
    }
    std::size_t least = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].proved.bound < nodes_[least].proved.bound) least = i;
    }
    bound_ = nodes_[least].proved.bound;
    if (bound_ >= enough_ || counter_.is_over()) return;
    Node again = nodes_[least];
    solve(again);
    relaxation_.list_worst(simplex_, worst_);
  }

  std::int64_t bound() const { return bound_; }
  const std::vector<OperatorIdx>& worst() const { return worst_; }

  OrderProof proof(std::int64_t unit) {
    OrderProof proof;
    proof.moments = relaxation_.moments();
    proof.unit = unit;
    proof.scale = relaxation_.scale();
    proof.shift = relaxation_.shift();
    for (Node& node : nodes_) {
      OrderLeaf leaf;
      for (const auto& [column, choice] : node.decisions) {
        leaf.decisions.push_back({relaxation_.variable(column), choice});
      }
      leaf.is_impossible = node.proved.is_impossible;
      leaf.prices = std::move(node.proved.prices);
      leaf.needs = std::move(node.proved.needs);
      proof.leaves.push_back(std::move(leaf));
    }
    return proof;
  }

 private:
  struct Node {
    std::vector<std::pair<std::int32_t, std::uint8_t>> decisions;
    LinearState state;
    Proved proved;
    std::int32_t next = -1;  // the column to decide next
  };

  void set_bounds(const Node& node) {
    const LinearProgram& program = relaxation_.program();
    for (std::size_t j = 0; j < low_.size(); ++j) {
      low_[j] = program.low[j] != 0 ? 1 : 0;
      high_[j] = 1;
    }
    for (const auto& [column, choice] : node.decisions) {
      low_[column] = std::max(low_[column], choice);
      high_[column] = choice;
    }
    for (std::size_t j = 0; j < low_.size(); ++j) {
      simplex_.set_bounds(static_cast<std::int32_t>(j), low_[j], high_[j]);
    }
  }

  Simplex::End run_simplex(double enough) {
    while (true) {
      const Simplex::End end = simplex_.run(enough, kSteps);
      counter_.take();
      if (end != Simplex::End::kLimit || counter_.is_over()) return end;
    }
  }

  void solve(Node& node) {
    set_bounds(node);
    simplex_.go_on_from(node.state);
    const double enough = relaxation_.in_program(enough_) * (1 + 1e-9) + 1e-9;
    const Simplex::End end = run_simplex(enough);
    node.state = simplex_.state();
    if (end == Simplex::End::kImpossible) {
      take(node, relaxation_.prove(simplex_.contradiction(), low_, high_, true));
    } else {
      // Multipliers that prove far more than enough are too large for whole numbers.
      std::vector<double> y = simplex_.multipliers();
      const double value = simplex_.value();
      if (value > 2 * enough) {
        for (double& each : y) each *= 1.5 * enough / value;
      }
      take(node, relaxation_.prove(y, low_, high_, false));
    }
    if (node.proved.bound < enough_) choose(node);
  }

  static void take(Node& node, Proved proved) {
    if (proved.bound > node.proved.bound || node.proved.prices.empty()) {
      node.proved = std::move(proved);
    }
  }

  // A fractional column; if there is none, the dearest that is 1 and not decided yet.
  void choose(Node& node) {
    const LinearProgram& program = relaxation_.program();
    double most = 0;
    for (std::size_t j = 0; j < low_.size(); ++j) {
      const auto column = static_cast<std::int32_t>(j);
      if (low_[j] == high_[j]) continue;
      const double x = simplex_.x(column);
      const double part = std::min(x, 1 - x);
      if (part < kWhole) continue;
      const double worth = part * (program.cost[j] + 1e-3);
      if (worth <= most) continue;
      most = worth;
      node.next = column;
    }
    for (std::size_t j = 0; j < low_.size() && most == 0; ++j) {
      const auto column = static_cast<std::int32_t>(j);
      if (low_[j] == high_[j] || simplex_.x(column) < 0.5 || program.cost[j] == 0) continue;
      if (node.next < 0 || program.cost[j] > program.cost[node.next]) node.next = column;
    }
  }

  const Relaxation& relaxation_;
  std::int64_t enough_;
  Counter& counter_;
  Simplex simplex_;
  std::vector<std::uint8_t> low_;
  std::vector<std::uint8_t> high_;
  std::vector<Node> nodes_;
  std::int64_t bound_ = 0;
  std::vector<OperatorIdx> worst_;  // where solutions have too much
};

// Moments are added one by one. Those at which solutions so far have too much are tried without
// branching, the best few of them with a few cases, and the best of these is added. In the end, the
// best program gets what is left of the budget.
class Growing {
 public:
  Growing(const Model& model, Bytes capacity, std::int64_t enough, Counter& counter)
      : model_(model), capacity_(capacity), enough_(enough), counter_(counter) {}

  OrderBound run(OperatorIdx first) {
    Tried at = bound({first}, kFewCases);
    while (!is_over() && at.moments.size() < kMostMoments && !at.worst.empty()) {
      std::vector<Tried> next;
      for (const OperatorIdx each : at.worst) {
        std::vector<OperatorIdx> moments = at.moments;
        moments.insert(std::upper_bound(moments.begin(), moments.end(), each), each);
        if (columns_of(model_, moments) <= kMostColumns) next.push_back(bound(moments, 1));
        if (is_over()) return best_;
      }
      if (next.empty()) break;
      sort(next);
      next.resize(std::min(next.size(), kTries));
      for (Tried& each : next) {
        each = bound(each.moments, kFewCases);
        if (is_over()) return best_;
      }
      sort(next);
      at = next.front();
    }
    if (!is_over()) bound(std::vector<OperatorIdx>(best_.proof.moments), kManyCases);
    return best_;
  }

 private:
  struct Tried {
    std::int64_t bound;
    std::vector<OperatorIdx> moments;
    std::vector<OperatorIdx> worst;
  };

  bool is_over() { return best_.bound >= enough_ || counter_.is_over(); }

  static void sort(std::vector<Tried>& tried) {
    std::stable_sort(tried.begin(), tried.end(),
                     [](const Tried& a, const Tried& b) { return a.bound > b.bound; });
  }

  Tried bound(const std::vector<OperatorIdx>& moments, std::size_t most_cases) {
    const Relaxation relaxation(model_, capacity_, moments);
    Branching branching(relaxation, enough_, counter_);
    branching.run(most_cases);
    Tried tried{branching.bound(), moments, branching.worst()};
    if (tried.bound > best_.bound) best_ = {tried.bound, branching.proof(model_.unit)};
    return tried;
  }

  const Model& model_;
  Bytes capacity_;
  std::int64_t enough_;
  Counter& counter_;
  OrderBound best_;
};

}  // namespace

OrderBound bound_by_moments(const Model& model, Bytes capacity, OperatorIdx first,
                            std::int64_t enough, Counter& counter) {
  return Growing(model, capacity, enough, counter).run(first);
}

OrderProof order_proof_of(const Model& model, const RecomputeProof& cut) {
  const std::int64_t n = model.operators();
  const std::int64_t m = model.storages();
  const auto again = [&](std::int64_t k) { return static_cast<std::int32_t>(n + 2 * m + m + k); };
  OrderProof proof{{cut.op}, cut.unit, cut.scale, cut.shift, {}};
  for (const CutLeaf& each : cut.leaves) {
    OrderLeaf leaf;
    leaf.prices = {each.price};
    for (const Decision& decision : each.decisions) {
      const bool is_again = decision.choice == RunChoice::kAgain;
      leaf.decisions.push_back({again(decision.op), static_cast<std::uint8_t>(is_again ? 1 : 0)});
    }
    for (const FlowArc& arc : each.flow) {
      const std::int64_t over = arc.from - 2 - 2 * n;
      if (over < 0 || over % 2 == 0) continue;
      const std::int64_t reader = arc.to - 2 - n;
      const auto need = static_cast<std::int32_t>(reader < 0 ? -1 : m + reader);
      leaf.needs.push_back({1, need, static_cast<StorageIdx>(over / 2), arc.amount});
    }
    proof.leaves.push_back(std::move(leaf));
  }
  return proof;
}

}  // namespace memplan::again
