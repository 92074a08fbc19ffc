#include "again/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "again/timeline.h"
#include "util/random.h"

namespace memplan::again {

namespace {

constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kTooMuch = std::int64_t{1} << 60;
constexpr std::size_t kMostDead = 256;    // of storages that are kept though they are over
constexpr std::size_t kMostDepth = 3000;  // of re-runs that need re-runs
// How many runs are too many, for each operator of a small program and of a large one.
constexpr std::size_t kMostRuns = 12;
constexpr std::size_t kMostRunsOfLarge = 3;

std::size_t most_runs(std::size_t operators) {
  return std::min(kMostRuns * operators + 1000, kMostRunsOfLarge * operators + 6000);
}

double power(double base, int halves) {
  if (halves == 0) return 1;
  return halves == 1 ? std::sqrt(base) : base;
}

// Runs an order like a machine with too little memory.
//
// Invariant: the storages that are present, with the workspace, are within the capacity whenever
// an operator runs, and all that it reads is present and locked. Before `op` runs, what it reads
// and is absent is brought back, the earliest made first: it is made again, with its own inputs
// first, or moved back if that costs less. Then what scores least is dropped until `op` fits. Only
// what can be brought back is dropped, or what is not needed any more. If a storage is dropped that
// will be made again, the inputs of its maker get a use at the time when the storage is needed
// next, so that they are not dropped as if they were dead.
class Simulation {
 public:
  Simulation(const Model& model, const std::vector<OperatorIdx>& order, Bytes capacity,
             const Scoring& scoring, Counter& counter)
      : model_(model),
        order_(order),
        capacity_(capacity),
        scoring_(scoring),
        counter_(counter),
        place_(order.size()),
        next_(model.size.size(), 0),
        implied_(model.size.size(), kNever),
        locks_(model.size.size(), 0),
        has_run_(order.size(), 0),
        has_begun_(model.given),
        at_(model.size.size(), -1),
        met_(order.size(), 0),
        used_(model.base) {
    for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<int>(i);
    std::vector<std::pair<std::int32_t, std::int32_t>> uses;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const StorageIdx s : model.reads[order[i]]) uses.emplace_back(s, static_cast<int>(i));
    }
    uses_ = Lists<std::int32_t>(model.size.size(), uses);
    for (StorageIdx s = 0; s < model.storages(); ++s) {
      if (model.given[s] != 0 && uses_[s].size() > 0) add(s);
    }
  }

  bool run() {
    const auto operators = static_cast<std::int32_t>(order_.size());
    for (now_ = 0; now_ < operators; ++now_) {
      if (!make(order_[now_], 0)) return false;
    }
    now_ = operators - 1;
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      if (model_.wanted[s] == 0 || model_.stays(s) || has_begun_[s] == 0) continue;
      ++locks_[s];
      if (at_[s] < 0 && !bring_back(s, 0)) return false;
    }
    return true;
  }

  std::vector<OperatorIdx> take_runs() { return std::move(runs_); }

 private:
  void add(StorageIdx s) {
    if (at_[s] >= 0) return;
    at_[s] = static_cast<std::int32_t>(present_.size());
    present_.push_back(s);
    used_ += model_.size[s];
  }
  void drop(StorageIdx s) {
    used_ -= model_.size[s];
    const StorageIdx moved = present_.back();
    present_[at_[s]] = moved;
    at_[moved] = at_[s];
    present_.pop_back();
    at_[s] = -1;
  }

  // The time of the next use: by an operator that has not run, to make something again, or at the
  // end.
  std::int32_t next_use(StorageIdx s) {
    std::int32_t& next = next_[s];
    const auto uses = uses_[s];
    while (next < static_cast<std::int32_t>(uses.size()) && uses[next] < now_) ++next;
    std::int32_t time = next < static_cast<std::int32_t>(uses.size()) ? uses[next] : kNever;
    if (model_.wanted[s] != 0) time = std::min(time, static_cast<std::int32_t>(order_.size()));
    return implied_[s] >= now_ ? std::min(time, implied_[s]) : time;
  }

  std::int32_t last_use(StorageIdx s) const {
    if (model_.wanted[s] != 0) return kNever;
    const auto uses = uses_[s];
    const std::int32_t last = uses.size() == 0 ? -1 : uses[uses.size() - 1];
    return implied_[s] < kNever ? std::max(last, implied_[s]) : last;
  }

  // What it costs to run `op` at a time, with all that will be absent then.
  std::int64_t estimate(OperatorIdx op, std::int32_t time) {
    if (op == kNoOperator) return kTooMuch;
    ++round_;
    std::int64_t cost = 0;
    int left = scoring_.depth;
    todo_.assign(1, op);
    met_[op] = round_;
    while (!todo_.empty()) {
      const OperatorIdx at = todo_.back();
      todo_.pop_back();
      if (model_.again[at] == 0) return kTooMuch;
      cost += model_.cost[at];
      if (--left < 0) continue;
      for (const StorageIdx s : model_.reads[at]) {
        const OperatorIdx maker = model_.maker[s];
        if (at_[s] >= 0 && (model_.can_drop[s] == 0 || last_use(s) >= time)) continue;
        if (maker != kNoOperator && met_[maker] == round_) continue;
        if (model_.can_move(s) && (model_.can_drop[s] == 0 || move_cost(s) < model_.cost[maker])) {
          cost += move_cost(s);
          continue;
        }
        if (maker == kNoOperator) return kTooMuch;
        met_[maker] = round_;
        todo_.push_back(maker);
      }
    }
    return cost;
  }

  std::int64_t move_cost(StorageIdx s) const { return model_.cost[model_.move_of(s)]; }

  // Whether a storage is to be moved back at a time, not made again.
  bool is_moved(StorageIdx s, std::int32_t time) {
    return model_.can_move(s) && estimate(model_.maker[s], time) >= move_cost(s);
  }

  double score(StorageIdx s, std::int32_t time) {
    std::int64_t cost = estimate(model_.maker[s], time);
    if (model_.can_move(s)) cost = std::min(cost, move_cost(s));
    if (cost >= kTooMuch) return -1;
    const double price = power(static_cast<double>(cost), scoring_.cost);
    const double bytes = power(static_cast<double>(model_.size[s]), scoring_.size);
    const double wait = power(static_cast<double>(time - now_) + 0.5, scoring_.time);
    const double score = (price + kLeastPrice) / (bytes * wait);
    return scoring_.weight == nullptr ? score : score * (*scoring_.weight)[s];
  }

  // What is not needed any more goes first, the largest first; all of it if it is much.
  bool drop_until_fits(Bytes needed) {
    if (used_ + needed > capacity_) drop_dead(needed);
    while (used_ + needed > capacity_) {
      const StorageIdx gone = find_least();
      if (gone < 0) return false;
      const std::int32_t time = next_use(gone);
      drop(gone);
      if (time != kNever && !is_moved(gone, time)) imply_uses(gone, time);
    }
    return true;
  }

  // A storage is over after a run that touches it. Those that were touched at the present time may
  // be needed by it still, so that they stay in the list.
  void drop_dead(Bytes needed) {
    dead_.clear();
    std::size_t kept = 0;
    for (const auto& [time, s] : touched_) {
      if (at_[s] < 0) continue;
      const bool is_dead = next_use(s) == kNever;
      if (is_dead || time == now_) touched_[kept++] = {time, s};
      if (is_dead && locks_[s] == 0 && model_.size[s] > 0) dead_.emplace_back(-model_.size[s], s);
    }
    touched_.resize(kept);
    std::sort(dead_.begin(), dead_.end());
    const bool drops_all = dead_.size() > kMostDead;
    for (const auto& [size, s] : dead_) {
      if (used_ + needed <= capacity_ && !drops_all) return;
      if (at_[s] >= 0) drop(s);
    }
  }

  // Of all that can be dropped; or of some of it, drawn at random, if that finds one.
  StorageIdx find_least() {
    StorageIdx least = -1;
    double least_score = 0;
    const auto consider = [&](StorageIdx s) {
      if (locks_[s] > 0 || model_.size[s] == 0 || !model_.can_leave(s)) return;
      const std::int32_t time = next_use(s);
      const double found = time == kNever ? 0 : score(s, time);
      if (found < 0 || (least >= 0 && found >= least_score)) return;
      least = s;
      least_score = found;
    };
    if (scoring_.sample > 0 && present_.size() > scoring_.sample) {
      for (std::size_t i = 0; i < scoring_.sample; ++i) {
        consider(present_[random_.index(present_.size())]);
      }
      if (least >= 0) return least;
    }
    for (const StorageIdx s : present_) consider(s);
    return least;
  }

  void imply_uses(StorageIdx dropped, std::int32_t time) {
    todo_.assign(1, model_.maker[dropped]);
    for (int left = scoring_.depth; left >= 0 && !todo_.empty(); --left) {
      const OperatorIdx op = todo_.back();
      todo_.pop_back();
      for (const StorageIdx s : model_.reads[op]) {
        if (implied_[s] >= now_ && implied_[s] <= time) continue;
        implied_[s] = time;
        if (at_[s] < 0 && model_.maker[s] != kNoOperator) todo_.push_back(model_.maker[s]);
      }
    }
  }

  // Runs an operator, with what it needs before it.
  bool make(OperatorIdx op, std::size_t depth) {
    if (has_run_[op] != 0 && model_.again[op] == 0) return false;
    if (depth > kMostDepth || runs_.size() > most_runs(order_.size())) return false;
    std::vector<StorageIdx> absent;
    for (const StorageIdx s : model_.reads[op]) {
      ++locks_[s];
      const bool is_made_here = has_begun_[s] == 0 && model_.maker[s] == kNoOperator;
      if (at_[s] < 0 && !is_made_here) absent.push_back(s);
    }
    std::sort(absent.begin(), absent.end(), [&](StorageIdx a, StorageIdx b) {
      return std::make_pair(maker_place(a), a) < std::make_pair(maker_place(b), b);
    });
    bool is_made = true;
    for (const StorageIdx s : absent) {
      if (!is_made || at_[s] >= 0) continue;
      is_made = bring_back(s, depth + 1);
    }
    is_made = is_made && run_now(op);
    for (const StorageIdx s : model_.reads[op]) --locks_[s];
    return is_made;
  }

  bool bring_back(StorageIdx s, std::size_t depth) {
    const OperatorIdx maker = model_.maker[s];
    if (!is_moved(s, now_) && maker != kNoOperator && make(maker, depth)) return true;
    return model_.can_move(s) && run_now(model_.move_of(s));
  }

  // What it makes is locked, so that a copy that is still there is not dropped for the new one.
  bool run_now(OperatorIdx op) {
    if (counter_.is_over()) return false;
    Bytes needed = model_.workspace[op];
    for (const StorageIdx s : model_.reads[op]) needed += at_[s] < 0 ? model_.size[s] : 0;
    for (const StorageIdx s : model_.makes[op]) {
      needed += at_[s] < 0 ? model_.size[s] : 0;
      ++locks_[s];
    }
    const bool fits = drop_until_fits(needed);
    for (const StorageIdx s : model_.makes[op]) --locks_[s];
    if (!fits) return false;
    runs_.push_back(op);
    if (op >= model_.operators() || has_run_[op] != 0) extra_ += model_.cost[op];
    if (extra_ > scoring_.most_extra) return false;
    if (op < model_.operators()) has_run_[op] = 1;
    const auto begin = [&](StorageIdx s) {
      has_begun_[s] = 1;
      add(s);
      touched_.emplace_back(now_, s);
    };
    for (const StorageIdx s : model_.reads[op]) begin(s);
    for (const StorageIdx s : model_.makes[op]) begin(s);
    return true;
  }

  std::int32_t maker_place(StorageIdx s) const {
    return model_.maker[s] == kNoOperator ? -1 : place_[model_.maker[s]];
  }

  static constexpr double kLeastPrice = 1e-9;

  const Model& model_;
  const std::vector<OperatorIdx>& order_;
  Bytes capacity_;
  const Scoring& scoring_;
  Counter& counter_;
  std::vector<std::int32_t> place_;    // by operator, in the order
  Lists<std::int32_t> uses_;           // by storage: places in the order
  std::vector<std::int32_t> next_;     // by storage: how many uses are over
  std::vector<std::int32_t> implied_;  // by storage: a use to make something again, if not past
  std::vector<std::int32_t> locks_;
  std::vector<std::uint8_t> has_run_;    // by operator
  std::vector<std::uint8_t> has_begun_;  // by storage
  std::vector<StorageIdx> present_;
  std::vector<std::int32_t> at_;  // by storage: where it is in present_, or -1
  std::vector<std::pair<Bytes, StorageIdx>> dead_;
  std::vector<std::pair<std::int32_t, StorageIdx>> touched_;  // lately, each with its time
  Random random_{1};
  std::vector<std::int32_t> met_;
  std::int32_t round_ = 0;
  std::vector<OperatorIdx> todo_;
  Bytes used_;
  std::int32_t now_ = 0;
  std::vector<OperatorIdx> runs_;
  std::int64_t extra_ = 0;  // the cost of the runs beyond the first ones
};

// Re-runs just before the first run that reads what they make. Runs from the back to the front:
// `reader` has the first slot that reads each storage in what comes later.
std::vector<OperatorIdx> delayed(const Model& model, const std::vector<OperatorIdx>& runs) {
  const std::vector<std::uint8_t> reruns = list_reruns(model, runs);
  std::vector<std::size_t> reader(model.size.size(), runs.size());
  std::vector<std::pair<std::int32_t, std::size_t>> moved;  // the slot before which a run goes
  for (std::size_t slot = runs.size(); slot-- > 0;) {
    const OperatorIdx op = runs[slot];
    std::size_t first = runs.size();
    for (const StorageIdx s : model.makes[op]) {
      first = std::min(first, reader[s]);
      reader[s] = runs.size();
    }
    for (const StorageIdx s : model.reads[op]) reader[s] = slot;
    if (reruns[slot] != 0) moved.emplace_back(static_cast<std::int32_t>(first), slot);
  }
  std::reverse(moved.begin(), moved.end());
  const Lists<std::size_t> before(runs.size() + 1, moved);
  std::vector<OperatorIdx> found;
  found.reserve(runs.size());
  // A run that is moved is put out with those that are moved before it.
  std::vector<std::pair<std::size_t, std::size_t>> open;  // a slot, and how many before it are out
  for (std::size_t slot = 0; slot <= runs.size(); ++slot) {
    if (slot < runs.size() && reruns[slot] != 0) continue;
    open.assign(1, {slot, 0});
    while (!open.empty()) {
      auto& [at, out] = open.back();
      const auto row = before[static_cast<std::int32_t>(at)];
      if (out < row.size()) {
        const std::size_t next = row[out++];
        open.emplace_back(next, 0);
      } else {
        if (at < runs.size()) found.push_back(runs[at]);
        open.pop_back();
      }
    }
  }
  return found;
}

void leave_out(const Model& model, Bytes capacity, Timeline& timeline,
               const std::vector<std::uint8_t>& reruns) {
  std::vector<std::pair<std::int64_t, std::size_t>> by_cost;
  for (std::size_t slot = 0; slot < reruns.size(); ++slot) {
    if (reruns[slot] != 0) by_cost.emplace_back(-model.cost[timeline.run(slot)], slot);
  }
  std::sort(by_cost.begin(), by_cost.end());
  for (const auto& [cost, slot] : by_cost) timeline.remove_if_fits(slot, capacity);
}

}  // namespace

std::optional<std::vector<OperatorIdx>> simulate(const Model& model,
                                                 const std::vector<OperatorIdx>& order,
                                                 Bytes capacity, const Scoring& scoring,
                                                 Counter& counter) {
  counter.take();
  Simulation simulation(model, order, capacity, scoring, counter);
  if (!simulation.run()) return std::nullopt;
  return simulation.take_runs();
}

void prune(const Model& model, Bytes capacity, std::vector<OperatorIdx>& runs) {
  Timeline timeline(model);
  std::vector<OperatorIdx> later = delayed(model, runs);
  timeline.set(later);
  if (check_runs(model, later) == nullptr && timeline.peak() <= capacity) runs = std::move(later);
  timeline.set(runs);
  leave_out(model, capacity, timeline, list_reruns(model, runs));
  runs = timeline.runs();
}

}  // namespace memplan::again
