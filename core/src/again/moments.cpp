#include "again/moments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <queue>
#include <utility>

#include "again/simplex.h"

namespace memplan::again {

namespace {

constexpr std::int32_t kBitsOfAllCosts = 50;
constexpr std::int32_t kMostOrderScale = 40;
constexpr std::int32_t kBitsOfProgram = 10;  // of all costs in the linear program, and of memory
constexpr std::int32_t kBitsOfContradiction = 40;  // of its largest multiplier
constexpr std::size_t kMostMoments = 12;
constexpr std::size_t kMostColumns = 20000;
constexpr std::size_t kFewCases = 256;
constexpr std::size_t kTries = 2;  // of moments to add, with a few cases
constexpr std::size_t kManyCases = 4000;
constexpr std::size_t kMostNeeds = 2000000;  // of a proof
constexpr std::int64_t kSteps = 50;          // of the simplex method, which count as a node
constexpr double kWhole = 1e-6;
constexpr double kMostSum = 1152921504606846976.0;  // 2^60

// Of the program of some moments.
std::size_t columns_of(const Model& model, const std::vector<OperatorIdx>& moments) {
  const std::size_t each = model.cost.size() + model.size.size();
  return moments.size() * each;
}

// What is known of one case: multipliers, and what they prove.
struct Proved {
  std::int64_t bound = 0;  // in units
  bool is_impossible = false;
  std::vector<std::int64_t> prices;
  std::vector<OrderNeed> needs;
};

// The linear program of some moments, and exact values of multipliers.
class Relaxation {
 public:
  Relaxation(const Model& model, Bytes capacity, std::vector<OperatorIdx> moments)
      : model_(model), capacity_(capacity), moments_(std::move(moments)) {
    bytes_bits_ = bits_of(std::max<Bytes>(capacity, 1));
    const std::int32_t total_bits = bits_of(model.total);
    scale_ = std::clamp(kBitsOfAllCosts - total_bits, 0, kMostOrderScale);
    shift_ = bytes_bits_ + 3;
    fraction_ = kBitsOfProgram - total_bits;
    add_columns();
    for (std::size_t block = 1; block <= moments_.size(); ++block) add_rows(block);
    for (std::size_t i = 0; i < moments_.size(); ++i) add_memory(i);
  }

  const LinearProgram& program() const { return program_; }
  std::int32_t scale() const { return scale_; }
  std::int32_t shift() const { return shift_; }
  const std::vector<OperatorIdx>& moments() const { return moments_; }
  double in_program(std::int64_t cost) const {
    return std::ldexp(static_cast<double>(cost), fraction_);
  }
  std::int32_t variable(std::int32_t column) const { return variable_[column]; }

  // What rounded multipliers prove if columns lie between these bounds.
  Proved prove(const std::vector<double>& y, const std::vector<std::uint8_t>& low,
               const std::vector<std::uint8_t>& high, bool is_impossible) const;

  // Adds the first runs at which a solution has most too much, in each block one.
  void list_worst(const Simplex& simplex, std::vector<OperatorIdx>& worst) const;

 private:
  std::vector<OperatorIdx> list_times(std::size_t block, const Simplex& simplex) const;
  double kept_after(std::size_t block, StorageIdx s, const Simplex& simplex) const;
  void add_stays(std::size_t block, StorageIdx s, const Simplex& simplex,
                 const std::vector<OperatorIdx>& time, std::vector<double>& change) const;
  struct Row {
    std::int32_t block;
    std::int32_t need;  // the variable, without its block; or -1
    StorageIdx storage;
  };

  std::int32_t stride() const { return model_.operators() + 2 * model_.storages(); }
  std::int32_t there(std::size_t i, StorageIdx s) const { return there_[i][s]; }
  std::int32_t again(std::size_t block, OperatorIdx k) const { return again_[block][k]; }
  OperatorIdx end_of(std::size_t block) const {
    return block < moments_.size() ? moments_[block] : model_.operators() - 1;
  }

  double in_memory(Bytes bytes) const {
    return std::ldexp(static_cast<double>(bytes), kBitsOfProgram - bytes_bits_);
  }
  void add_columns();
  void add_rows(std::size_t block);
  void add_row(std::size_t block, std::int32_t need, std::int32_t column, StorageIdx s);
  void add_memory(std::size_t i);

  const Model& model_;
  Bytes capacity_;
  std::vector<OperatorIdx> moments_;
  std::int32_t bytes_bits_ = 0;
  std::int32_t scale_ = 0;
  std::int32_t shift_ = 0;
  std::int32_t fraction_ = 0;
  std::vector<OperatorIdx> start_;  // by storage: its first user; -1 if it is given
  std::vector<OperatorIdx> last_;   // by storage: its last user; the number of operators if wanted
  std::vector<std::vector<std::int32_t>> there_;  // by moment and storage: a column, or -1
  std::vector<std::vector<std::int32_t>> again_;  // by block and run: a column, or -1
  std::vector<std::int32_t> variable_;            // by column
  std::vector<std::int64_t> cost_;                // by column, scaled
  std::vector<Row> row_;                          // without those of the memory
  std::vector<Bytes> room_;                       // by moment
  LinearProgram program_;
};

void Relaxation::add_columns() {
  const OperatorIdx n = model_.operators();
  start_.assign(model_.size.size(), n);
  last_.assign(model_.size.size(), -1);
  for (OperatorIdx k = 0; k < n; ++k) {
    for (const auto* list : {&model_.reads, &model_.makes}) {
      for (const StorageIdx s : (*list)[k]) {
        start_[s] = std::min(start_[s], k);
        last_[s] = std::max(last_[s], k);
      }
    }
  }
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (start_[s] == n) continue;
    if (model_.given[s] != 0) start_[s] = -1;
    if (model_.wanted[s] != 0) last_[s] = n;
  }
  const auto add = [&](std::int32_t variable, std::int64_t cost, double lowest) {
    variable_.push_back(variable);
    cost_.push_back(cost << scale_);
    return program_.add_column(in_program(cost), lowest);
  };
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const auto base = static_cast<std::int32_t>(i) * stride();
    there_.emplace_back(model_.size.size(), -1);
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      if (start_[s] <= moments_[i]) there_[i][s] = add(base + s, 0, 0);
    }
    for (const auto* list : {&model_.reads, &model_.makes}) {
      for (const StorageIdx s : (*list)[moments_[i]]) program_.low[there_[i][s]] = 1;
    }
  }
  again_.emplace_back();
  for (std::size_t block = 1; block <= moments_.size(); ++block) {
    const auto base = static_cast<std::int32_t>(block) * stride() + model_.storages();
    again_.emplace_back(model_.cost.size(), -1);
    for (OperatorIdx run = 0; run < model_.runs(); ++run) {
      const bool is_move = run >= n;
      const OperatorIdx first = is_move ? start_[run - n] : run;
      if (model_.again[run] == 0 || first > moments_[block - 1]) continue;
      if (!is_move && model_.makes[run].size() == 0) continue;
      again_[block][run] = add(base + run, model_.cost[run], 0);
    }
  }
}

void Relaxation::add_row(std::size_t block, std::int32_t need, std::int32_t column, StorageIdx s) {
  std::vector<LinearEntry> entries{{there(block - 1, s), 1.0}};
  for (const OperatorIdx run : {model_.maker[s], model_.move_of(s)}) {
    if (run != kNoOperator && again(block, run) >= 0) entries.push_back({again(block, run), 1.0});
  }
  if (column >= 0) entries.push_back({column, -1.0});
  program_.add_row(column < 0 ? 1.0 : 0.0, std::move(entries));
  row_.push_back({static_cast<std::int32_t>(block), need, s});
}

void Relaxation::add_rows(std::size_t block) {
  const OperatorIdx before = moments_[block - 1];
  const bool is_last = block == moments_.size();
  std::vector<std::uint8_t> is_needed(model_.size.size(), 0);
  for (OperatorIdx k = before + 1; k <= end_of(block); ++k) {
    for (const StorageIdx s : model_.reads[k]) is_needed[s] = 1;
  }
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (start_[s] > before) continue;
    if (is_needed[s] != 0 || (is_last && last_[s] == model_.operators())) add_row(block, -1, -1, s);
    if (!is_last && program_.low[there(block, s)] == 0) add_row(block, s, there(block, s), s);
  }
  for (OperatorIdx k = 0; k <= before; ++k) {
    if (again(block, k) < 0) continue;
    for (const StorageIdx s : model_.reads[k]) {
      add_row(block, model_.storages() + k, again(block, k), s);
    }
  }
}

void Relaxation::add_memory(std::size_t i) {
  Bytes touched = 0;
  std::vector<LinearEntry> entries;
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    const std::int32_t column = there(i, s);
    if (column < 0 || model_.size[s] == 0 || program_.low[column] != 0) continue;
    entries.push_back({column, -in_memory(model_.size[s])});
  }
  touched = own_bytes(model_, moments_[i]);
  room_.push_back(capacity_ - touched);
  program_.add_row(-in_memory(room_.back()), std::move(entries));
}

Proved Relaxation::prove(const std::vector<double>& y, const std::vector<std::uint8_t>& low,
                         const std::vector<std::uint8_t>& high, bool is_impossible) const {
  Proved proved;
  proved.is_impossible = is_impossible;
  double factor = std::ldexp(1.0, scale_ - fraction_);
  std::vector<std::int64_t> reduced = cost_;
  if (is_impossible) {
    factor = std::ldexp(1.0, kBitsOfContradiction) / *std::max_element(y.begin(), y.end());
    std::fill(reduced.begin(), reduced.end(), 0);
  }
  std::vector<double> sums(reduced.begin(), reduced.end());
  double all = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    const double price =
        y[row_.size() + i] * factor * std::ldexp(1.0, shift_ + kBitsOfProgram - bytes_bits_);
    proved.prices.push_back(price >= kMostSum ? std::int64_t{1} << 60
                                              : static_cast<std::int64_t>(price));
    value -= price_of(proved.prices[i], room_[i], shift_);
    all += static_cast<double>(price_of(proved.prices[i], room_[i], shift_));
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      const std::int32_t column = there(i, s);
      if (column < 0 || program_.low[column] != 0) continue;
      reduced[column] += price_of(proved.prices[i], model_.size[s], shift_);
      sums[column] += static_cast<double>(reduced[column]);
    }
  }
  for (std::size_t r = 0; r < row_.size(); ++r) {
    const double rounded = std::floor(y[r] * factor + 0.5);
    if (rounded < 1) continue;
    if (rounded > kMostSum) return {};
    const auto amount = static_cast<std::int64_t>(rounded);
    for (const LinearEntry& entry : program_.rows[r]) {
      sums[entry.at] += rounded;
      if (sums[entry.at] > kMostSum) return {};
      reduced[entry.at] -= entry.value > 0 ? amount : -amount;
    }
    if (row_[r].need < 0) value += amount;
    all += rounded;
    proved.needs.push_back({row_[r].block, row_[r].need, row_[r].storage, amount});
  }
  for (std::size_t column = 0; column < reduced.size(); ++column) {
    const bool is_one = low[column] != 0 || (high[column] != 0 && reduced[column] < 0);
    if (!is_one) continue;
    value += reduced[column];
    all += std::abs(static_cast<double>(reduced[column]));
    if (all > kMostSum) return {};
  }
  if (is_impossible) {
    proved.bound = value > 0 ? kNothingFits : 0;
    return proved;
  }
  const std::int64_t one = std::int64_t{1} << scale_;
  proved.bound = value <= 0 ? 0 : (value - 1) / one + 1;
  return proved;
}

// Between two moments, what is there at the first stays as long as it is needed, and what is made
// in between too. What runs again does so as late as it can, and what it makes stays until it is
// read last.
void Relaxation::list_worst(const Simplex& simplex, std::vector<OperatorIdx>& worst) const {
  std::vector<double> change(static_cast<std::size_t>(model_.operators()) + 1, 0.0);
  for (std::size_t block = 0; block <= moments_.size(); ++block) {
    const std::vector<OperatorIdx> time = list_times(block, simplex);
    for (StorageIdx s = 0; s < model_.storages(); ++s) add_stays(block, s, simplex, time, change);
  }
  double load = static_cast<double>(model_.base);
  OperatorIdx k = 0;
  for (std::size_t block = 0; block <= moments_.size(); ++block) {
    double most = static_cast<double>(capacity_) * (1 + 1e-9);
    OperatorIdx found = kNoOperator;
    for (; k <= end_of(block); ++k) {
      load += change[k];
      const double need = load + static_cast<double>(model_.workspace[k]);
      const bool is_moment = block < moments_.size() && k == moments_[block];
      if (is_moment || need <= most) continue;
      most = need;
      found = k;
    }
    const bool is_new = std::find(worst.begin(), worst.end(), found) == worst.end();
    if (found != kNoOperator && is_new) worst.push_back(found);
  }
}

// By run: before which first run of a block it has to take place again; past the last operator, if
// it does not.
std::vector<OperatorIdx> Relaxation::list_times(std::size_t block, const Simplex& simplex) const {
  const OperatorIdx n = model_.operators();
  std::vector<OperatorIdx> time(model_.cost.size(), n);
  if (block == 0) return time;
  const OperatorIdx before = moments_[block - 1];
  const auto set_time = [&](OperatorIdx run, StorageIdx s) {
    if (again(block, run) < 0 || simplex.x(again(block, run)) < kWhole) return;
    for (const OperatorIdx reader : model_.readers[s]) {
      const OperatorIdx at = reader > before ? reader : time[reader];
      if (at <= end_of(block)) time[run] = std::min(time[run], at);
    }
    if (kept_after(block, s, simplex) >= kWhole) time[run] = std::min(time[run], end_of(block));
  };
  for (OperatorIdx k = before; k >= 0; --k) {
    for (const StorageIdx s : model_.makes[k]) set_time(k, s);
  }
  for (StorageIdx s = 0; s < model_.storages(); ++s) set_time(model_.move_of(s), s);
  return time;
}

double Relaxation::kept_after(std::size_t block, StorageIdx s, const Simplex& simplex) const {
  if (block < moments_.size()) return there(block, s) < 0 ? 0 : simplex.x(there(block, s));
  return last_[s] == model_.operators() ? 1 : 0;
}

void Relaxation::add_stays(std::size_t block, StorageIdx s, const Simplex& simplex,
                           const std::vector<OperatorIdx>& time,
                           std::vector<double>& change) const {
  const OperatorIdx before = block == 0 ? -1 : moments_[block - 1];
  const OperatorIdx end = end_of(block);
  if (start_[s] > end) return;
  const auto bytes = static_cast<double>(model_.size[s]);
  OperatorIdx last = -1;
  for (const OperatorIdx reader : model_.readers[s]) {
    const OperatorIdx at = reader > before ? reader : time[reader];
    if (at <= end) last = std::max(last, at);
  }
  const double kept = kept_after(block, s, simplex);
  const auto stay = [&](OperatorIdx from, double share) {
    const OperatorIdx until = std::max(last, from - 1);
    change[from] += share * bytes;
    change[until + 1] -= share * bytes;
    const OperatorIdx rest = std::max(from, until + 1);
    if (rest > end) return;
    change[rest] += std::min(share, kept) * bytes;
    change[end + 1] -= std::min(share, kept) * bytes;
  };
  if (start_[s] > before || block == 0) {
    last = std::max(last, start_[s]);
    stay(std::max(start_[s], 0), 1.0);
    return;
  }
  stay(before + 1, simplex.x(there(block - 1, s)));
  for (const OperatorIdx run : {model_.maker[s], model_.move_of(s)}) {
    if (run == kNoOperator || again(block, run) < 0 || time[run] > end) continue;
    const double room = 1 - simplex.x(there(block - 1, s));
    const double share = std::min(simplex.x(again(block, run)), room);
    if (share > 0) stay(time[run], share);
  }
}

// Branching, best first.
class Branching {
 public:
  Branching(const Relaxation& relaxation, std::int64_t enough, order::Counter& counter)
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
    bound_ = std::numeric_limits<std::int64_t>::max();
    std::size_t least = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].proved.bound < nodes_[least].proved.bound) least = i;
    }
    bound_ = nodes_[least].proved.bound;
    if (bound_ >= enough_) return;
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
  order::Counter& counter_;
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
  Growing(const Model& model, Bytes capacity, std::int64_t enough, order::Counter& counter)
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
  order::Counter& counter_;
  OrderBound best_;
};

}  // namespace

OrderBound bound_by_moments(const Model& model, Bytes capacity, OperatorIdx first,
                            std::int64_t enough, order::Counter& counter) {
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
      const bool is_again = decision.choice == Choice::kAgain;
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
