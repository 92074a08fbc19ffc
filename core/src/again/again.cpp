#include "memplan/again.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "again/backward.h"
#include "again/branch.h"
#include "again/cut.h"
#include "again/model.h"
#include "again/moments.h"
#include "again/repair.h"
#include "again/simulate.h"
#include "again/timeline.h"
#include "util/failure.h"

namespace memplan {

namespace again {

namespace {

constexpr std::size_t kMoments = 24;         // which are bounded by the cut alone
constexpr std::size_t kBranched = 4;         // of these, which are bounded by branching too
constexpr std::size_t kFloors = 8;           // operators whose floor is a cut
constexpr std::size_t kMostCases = 4000;     // of one moment
constexpr std::size_t kMostArcs = 1000000;   // of a proof
constexpr std::size_t kSample = 64;          // from which the first run chooses what it drops
constexpr double kShareOfBounds = 0.3;       // of the time
constexpr double kShareOfOneWay = 0.3;       // of the time, for moves alone, and for re-runs alone
constexpr std::int64_t kNodesForBounds = 2;  // one of so many
constexpr double kShareOfMoments = 0.3;      // of the time that is left
constexpr double kShareOfLast = 0.9;         // of it in the end: proofs are written after that
constexpr std::int64_t kNodesForMoments = 10;  // one of so many

class RecomputeSearch {
 public:
  RecomputeSearch(const RecomputeProblem& problem, Bytes capacity, const RecomputeOptions& options)
      : problem_(problem),
        model_(make_model(problem)),
        scaling_(choose_scaling(model_, capacity)),
        capacity_(capacity),
        options_(options),
        stopper_(options.budget.seconds, options.interrupt),
        counter_(options.budget.nodes, stopper_),
        timeline_(model_),
        given_(problem.program.workspace.size()) {
    std::iota(given_.begin(), given_.end(), 0);
  }

  RecomputeResult solve() {
    timeline_.set(given_);
    find_floor();
    if (result_.floor > capacity_) {
      result_.status = Status::kInfeasible;
    } else if (timeline_.peak() <= capacity_) {
      take(given_);
    } else {
      search_each_way();
      run_first();
      best_moment_ = bound_moments(false, kShareOfBounds);
      bound_ = best_moment_.found.bound;
      if (!is_closed()) bound_in_order();
      if (!is_closed()) search_by_running();
      if (!is_closed()) search_backwards();
      if (!is_closed() && !options_.free_order) bound_over_moments(kShareOfMoments);
      if (!is_closed() && options_.rules.repair) search_by_repair();
      if (!is_closed()) bound_over_moments(kShareOfLast);
    }
    return finish();
  }

 private:
  bool is_closed() const {
    if (stopped_ || is_impossible()) return true;
    return has_runs() && result_.extra <= least_extra();
  }

  // Whether no sequence that is allowed fits.
  bool is_impossible() const {
    return bound_ > model_.total || (!options_.free_order && is_order_impossible_);
  }

  // What no sequence that is allowed goes below.
  std::int64_t least_extra() const {
    return options_.free_order ? bound_ : std::max(bound_, order_bound_);
  }
  // A program without operators has a sequence of no runs.
  bool has_runs() const { return has_runs_; }

  void take(std::vector<OperatorIdx> runs) {
    const std::int64_t extra = extra_of(model_, runs);
    if (has_runs() && extra >= result_.extra) return;
    has_runs_ = true;
    result_.extra = extra;
    result_.runs = std::move(runs);
  }

  // What one operator needs by itself, and for those that need most, what has to be kept with it
  // although all that may run again is dropped.
  void find_floor() {
    result_.floor = model_.start;
    std::vector<std::pair<Bytes, OperatorIdx>> by_need;
    for (OperatorIdx op = 0; op < model_.operators(); ++op) {
      by_need.emplace_back(-own_bytes(model_, op), op);
    }
    std::sort(by_need.begin(), by_need.end());
    std::vector<OperatorIdx> tried;
    for (std::size_t i = 0; i < std::min(kFloors, by_need.size()); ++i) {
      tried.push_back(by_need[i].second);
    }
    for (const std::size_t slot : by_load()) {
      if (tried.size() >= 2 * kFloors) break;
      tried.push_back(given_[slot]);
    }
    for (const OperatorIdx op : tried) {
      if (op != tried.front() && stopper_.look()) return;
      std::vector<FlowArc> flow;
      const Bytes floor = CutNetwork(model_, scaling_, op).floor(&flow);
      if (floor < result_.floor || (floor == result_.floor && result_.floor_op >= 0)) continue;
      result_.floor = floor;
      result_.floor_op = op;
      result_.floor_flow = std::move(flow);
    }
  }

  // The slots of the given order, from the largest load on.
  std::vector<std::size_t> by_load() const {
    std::vector<std::size_t> slots(given_.size());
    std::iota(slots.begin(), slots.end(), std::size_t{0});
    std::stable_sort(slots.begin(), slots.end(), [&](std::size_t a, std::size_t b) {
      return timeline_.load(a) > timeline_.load(b);
    });
    return slots;
  }

  // Operators at which the given order has too much: the largest loads, and some between.
  std::vector<OperatorIdx> choose_moments() const {
    std::vector<OperatorIdx> above;
    for (const OperatorIdx op : given_) {
      if (timeline_.load(static_cast<std::size_t>(op)) > capacity_) above.push_back(op);
    }
    std::vector<OperatorIdx> moments;
    const auto add = [&](OperatorIdx op) {
      if (std::find(moments.begin(), moments.end(), op) == moments.end()) moments.push_back(op);
    };
    const std::vector<std::size_t> largest = by_load();
    for (std::size_t i = 0; i < std::min<std::size_t>(kBranched, above.size()); ++i) {
      add(given_[largest[i]]);
    }
    for (std::size_t i = 0; i < kMoments; ++i) {
      add(above[i * (above.size() - 1) / (kMoments - 1)]);
    }
    return moments;
  }

  struct Moment {
    OperatorIdx op;
    Branched found;
  };

  // The best bound of some moments, for any order or for the given one. Bounds take a part of the
  // budget at most.
  Moment bound_moments(bool in_order, double share) {
    const Budget& budget = options_.budget;
    Stopper stopper(budget.seconds * share, options_.interrupt);
    Counter counter(budget.nodes / kNodesForBounds, stopper);
    std::vector<Moment> moments;
    for (const OperatorIdx op : choose_moments()) {
      if (counter.is_over() && !moments.empty()) break;
      CutNetwork network = make_network(op, in_order);
      moments.push_back({op, bound_root(model_, network, scaling_, capacity_, enough(), counter)});
    }
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return a.found.bound > b.found.bound;
    });
    Moment best{kNoOperator, {}};
    for (std::size_t i = 0; i < moments.size(); ++i) {
      Moment& moment = moments[i];
      if (i < kBranched && options_.rules.branching && best.found.bound < enough()) {
        CutNetwork network = make_network(moment.op, in_order);
        const std::size_t most = std::min(kMostCases, kMostArcs / (network.arcs() + 1) + 2);
        branch(model_, network, scaling_, capacity_, enough(), most, counter, moment.found);
      }
      if (moment.found.bound > best.found.bound) best = std::move(moment);
    }
    nodes_ += counter.used();
    stopped_ |= stopper.interrupted();
    return best;
  }

  CutNetwork make_network(OperatorIdx op, bool in_order) const {
    if (!in_order) return CutNetwork(model_, scaling_, op);
    std::vector<std::uint8_t> done(given_.size(), 0);
    std::fill(done.begin(), done.begin() + op, std::uint8_t{1});
    return CutNetwork(model_, scaling_, op, done);
  }

  void bound_in_order() {
    order_moment_ = bound_moments(true, kShareOfBounds / 2);
    order_bound_ = order_moment_.found.bound;
    is_order_impossible_ = order_bound_ > model_.total;
  }

  // The same from several moments, beginning with the best one.
  void bound_over_moments(double share) {
    if (order_moment_.op == kNoOperator || !options_.rules.moments) return;
    const std::int64_t aim = has_runs() ? result_.extra : kNothingFits;
    if (order_bound_ >= aim || order_aim_ == aim || is_order_impossible_) return;
    order_aim_ = aim;
    Stopper stopper(left() * share, options_.interrupt);
    Counter counter(options_.budget.nodes / kNodesForMoments, stopper);
    OrderBound found = bound_by_moments(model_, capacity_, order_moment_.op, aim, counter);
    nodes_ += counter.used();
    stopped_ |= stopper.interrupted();
    if (found.bound <= order_bound_) return;
    is_order_impossible_ = found.bound == kNothingFits;
    order_bound_ = is_order_impossible_ ? model_.total + 1 : found.bound;
    result_.order_certificate = std::move(found.proof);
  }

  double left() const { return std::max(0.0, options_.budget.seconds - stopper_.elapsed()); }

  // A bound that is enough to end: more than all re-runs cost, if nothing is found yet.
  std::int64_t enough() const { return has_runs() ? result_.extra : model_.total + 1; }

  // Where storages may be moved and operators may run again, what is found with either alone is
  // where both together begin, so that they are never worse with the same budget in nodes.
  void search_each_way() {
    const auto first_move = model_.again.begin() + model_.operators();
    const auto is_possible = [](auto first, auto last) {
      return std::find(first, last, 1) != last;
    };
    if (!is_possible(model_.again.begin(), first_move) ||
        !is_possible(first_move, model_.again.end())) {
      return;
    }
    for (const bool moves : {false, true}) {
      RecomputeProblem part = problem_;
      if (moves) {
        std::fill(part.again.begin(), part.again.end(), std::uint8_t{0});
      } else {
        std::fill(part.move.begin(), part.move.end(), std::int64_t{-1});
      }
      RecomputeOptions options = options_;
      options.budget.seconds *= kShareOfOneWay;
      RecomputeResult found = RecomputeSearch(part, capacity_, options).solve();
      nodes_ += found.nodes;
      stopped_ |= found.interrupted;
      if (!found.runs.empty()) take(std::move(found.runs));
      if (stopped_) return;
    }
  }

  // Runs the given order with several ways to choose what is dropped: first as the solutions of the
  // bounds do, which drop what they run again and keep the rest.
  void search_by_running() {
    const Pick* const first = &best_moment_.found.best;
    const Pick* const second = &order_moment_.found.best;
    for (const Pick* pick : {first, second}) {
      const bool is_known = pick == second && pick->again == first->again;
      if (!options_.rules.guide || pick->done.empty() || is_known) continue;
      for (const int strength : {13, 4}) {
        const std::vector<double> weight = guided(*pick, strength);
        for (const int depth : {40, 4}) {
          Scoring scoring;
          scoring.depth = depth;
          scoring.weight = &weight;
          run_order(scoring, counter_);
          if (is_closed() || counter_.is_over()) return;
        }
      }
    }
    for (const int depth : {40, 4}) {
      for (const Scoring& exponents : kExponents) {
        Scoring scoring = exponents;
        scoring.depth = depth;
        run_order(scoring, counter_);
        if (is_closed() || counter_.is_over()) return;
      }
    }
  }

  // From the end of the order, with several prices of a byte. Wider searches are only for programs
  // into which nothing fits yet.
  void search_backwards() {
    const int usual = usual_byte_price(model_, capacity_);
    for (const BackwardOptions& each : kBackwards) {
      if (each.thorough && has_runs()) return;
      BackwardOptions options = each;
      options.free_order = options_.free_order;
      for (int change = -4; change <= 6; change += 2) {
        options.price = usual + change;
        auto runs = run_backward(model_, given_, capacity_, options, counter_);
        if (runs && check_runs(model_, *runs) == nullptr) take_pruned(std::move(*runs));
        if (is_closed() || counter_.is_over()) return;
      }
    }
  }

  void take_pruned(std::vector<OperatorIdx> runs) {
    prune(model_, capacity_, runs);
    take(std::move(runs));
  }

  void search_by_repair() {
    Stopper stopper(left() * (1 - kShareOfMoments), options_.interrupt);
    Counter counter(options_.budget.nodes, stopper);
    Repair repair(model_, capacity_, options_.free_order, counter);
    bool fits = true;
    if (has_runs()) {
      repair.start_from(result_.runs);
    } else {
      fits = repair.start(given_);
    }
    if (fits) {
      repair.improve(least_extra());
      take(repair.best());
    }
    nodes_ += counter.used();
    stopped_ |= stopper.interrupted();
  }

  // A sequence to begin with, if that takes a part of the budget at most.
  void run_first() {
    Stopper stopper(options_.budget.seconds * kShareOfBounds, options_.interrupt);
    Counter counter(options_.budget.nodes, stopper);
    Scoring scoring;
    scoring.sample = kSample;
    run_order(scoring, counter);
    nodes_ += counter.used();
    stopped_ |= stopper.interrupted();
  }

  // What costs much more than the best sequence is given up.
  void run_order(Scoring scoring, Counter& counter) {
    if (has_runs()) scoring.most_extra = result_.extra + result_.extra / 2;
    auto runs = simulate(model_, given_, capacity_, scoring, counter);
    if (runs) take_pruned(std::move(*runs));
  }

  // Powers of two, by storage.
  std::vector<double> guided(const Pick& pick, int strength) const {
    std::vector<double> weight(model_.size.size(), 1.0);
    const double factor = static_cast<double>(std::int64_t{1} << strength);
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      const OperatorIdx maker = model_.maker[s];
      const bool is_made_again = maker != kNoOperator && pick.again[maker] != 0;
      const bool is_dropped = is_made_again || pick.again[model_.move_of(s)] != 0;
      if (model_.can_leave(s)) weight[s] = is_dropped ? 1 / factor : factor;
    }
    return weight;
  }

  RecomputeResult finish() {
    if (has_runs()) {
      timeline_.set(result_.runs);
      result_.peak = std::max(timeline_.peak(), model_.start);
      result_.extra *= model_.unit;
      result_.status = Status::kFeasible;
    }
    result_.bound = bound_ * model_.unit;
    result_.order_bound = std::max(order_bound_ * model_.unit, result_.bound);
    if (has_runs() && result_.extra <= least_extra() * model_.unit) {
      result_.status = Status::kOptimal;
    }
    if (!has_runs() && is_impossible()) result_.status = Status::kInfeasible;
    if (best_moment_.op != kNoOperator) {
      CutNetwork network(model_, scaling_, best_moment_.op);
      result_.certificate = make_proof(model_, network, scaling_, capacity_, best_moment_.op,
                                       best_moment_.found.leaves);
    }
    if (order_bound_ > bound_ && result_.order_certificate.moments.empty()) {
      CutNetwork network = make_network(order_moment_.op, true);
      result_.order_certificate =
          order_proof_of(model_, make_proof(model_, network, scaling_, capacity_, order_moment_.op,
                                            order_moment_.found.leaves));
    }
    result_.nodes = nodes_ + counter_.used();
    result_.interrupted = stopped_ || stopper_.interrupted();
    return std::move(result_);
  }

  static constexpr BackwardOptions kBackwards[] = {
      {true, 1, false, 0}, {true, 8, true, 0}, {true, 30, true, 0}, {true, 100, true, 0}};
  static constexpr Scoring kExponents[] = {{2, 2, 2}, {2, 2, 1}, {1, 2, 2}, {2, 2, 0},
                                           {0, 2, 2}, {2, 1, 2}, {2, 0, 2}, {1, 1, 2}};

  const RecomputeProblem& problem_;
  Model model_;
  Scaling scaling_;
  Bytes capacity_;
  const RecomputeOptions& options_;
  Stopper stopper_;
  Counter counter_;
  Timeline timeline_;
  std::vector<OperatorIdx> given_;
  std::int64_t bound_ = 0;        // in units
  std::int64_t order_bound_ = 0;  // in units
  std::int64_t nodes_ = 0;        // of bounds
  bool stopped_ = false;          // by the caller, within a bound
  bool has_runs_ = false;
  Moment best_moment_{kNoOperator, {}};
  Moment order_moment_{kNoOperator, {}};  // for the given order
  std::int64_t order_aim_ = -1;           // of the bound over moments
  bool is_order_impossible_ = false;      // in the given order nothing fits
  RecomputeResult result_;
};

}  // namespace

}  // namespace again

Load load_of(const RecomputeProblem& problem, const std::vector<OperatorIdx>& runs) {
  if (const std::string wrong = check(problem); !wrong.empty()) fail(wrong);
  const again::Model model = again::make_model(problem);
  if (const char* wrong = again::check_runs(model, runs)) fail(wrong);
  again::Timeline timeline(model);
  timeline.set(runs);
  return {timeline.peak(), again::extra_of(model, runs) * model.unit};
}

RecomputeResult recompute(const RecomputeProblem& problem, Bytes capacity,
                          const RecomputeOptions& options) {
  if (const std::string wrong = check(problem); !wrong.empty()) fail(wrong);
  if (capacity < 0) fail("a capacity must be 0 or more");
  return again::RecomputeSearch(problem, capacity, options).solve();
}

}  // namespace memplan
