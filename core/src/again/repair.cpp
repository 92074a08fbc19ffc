#include "again/repair.h"

#include <algorithm>
#include <utility>

namespace memplan::again {

namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kStarts = 2000;  // attempts to make a sequence fit at all
constexpr std::size_t kTriesOfStep = 10;
constexpr std::size_t kMostSteps = 400;    // insertions of one repair, and one for each operator
constexpr std::size_t kMostInputs = 80;    // that are made again with one operator
constexpr std::size_t kFruitless = 20000;  // rounds without a better sequence
constexpr std::size_t kPerOperator = 60;   // of either, so that small programs take less
constexpr std::size_t kReturn = 200;  // rounds from one return to the best sequence to the next
constexpr std::int64_t kLooksOfNode = 1 << 18;  // of a timeline: a round that looks at more is more

std::size_t limited(const Model& model, std::size_t most) {
  return std::min(most, kPerOperator * (static_cast<std::size_t>(model.operators()) + 1));
}

// How far a run can move towards the front (step -1) or the back (step 1): up to the next run that
// makes or moves what it touches, reads what it makes, waits for it, or is one of the same
// operator.
std::size_t find_limit(const Model& model, const std::vector<OperatorIdx>& runs, std::size_t from,
                       int step) {
  const OperatorIdx op = runs[from];
  const auto has = [](const auto& row, std::int32_t entry) {
    return std::find(row.begin(), row.end(), entry) != row.end();
  };
  const auto is_bound = [&](OperatorIdx other) {
    if (other == op) return true;
    const bool are_operators = std::max(op, other) < model.operators();
    if (are_operators && has(step < 0 ? model.before[op] : model.after[op], other)) return true;
    for (const StorageIdx s : model.reads[op]) {
      if (model.is_maker(other, s) ||
          (model.maker[s] == kNoOperator && has(model.readers[s], other) && model.given[s] == 0)) {
        return true;
      }
    }
    for (const StorageIdx s : model.makes[op]) {
      if (model.is_maker(other, s) || has(model.readers[s], other)) return true;
    }
    return false;
  };
  std::size_t at = from;
  while (true) {
    if (step < 0 ? at == 0 : at + 1 == runs.size()) return at;
    const std::size_t next = step < 0 ? at - 1 : at + 1;
    if (is_bound(runs[next])) return at;
    at = next;
  }
}

}  // namespace

Repair::Repair(const Model& model, Bytes capacity, bool free_order, Counter& counter)
    : model_(model),
      capacity_(capacity),
      free_order_(free_order),
      counter_(counter),
      random_(kSeed),
      timeline_(model),
      least_cost_(static_cast<double>(model.total) / (1 << 24) + 1e-3),
      first_run_(model.again.size(), 0),
      met_(model.operators(), 0) {}

// Counts what was looked at as nodes: rounds of large programs take much longer than small ones.
bool Repair::is_over() {
  const std::int64_t nodes = (timeline_.looked() - counted_) / kLooksOfNode;
  counted_ += nodes * kLooksOfNode;
  if (nodes > 0) counter_.take(nodes);
  return counter_.is_over();
}

// A factor around 1, from 2^-noise to 2^(noise + 1).
double Repair::drawn_factor(int noise) {
  if (noise == 0) return 1;
  const auto steps = static_cast<std::size_t>(2 * noise + 1);
  const double part = 1.0 + static_cast<double>(below(1024)) / 1024;
  const int exponent = static_cast<int>(below(steps)) - noise;
  return exponent >= 0 ? part * (1 << exponent) : part / (1 << -exponent);
}

// Tries the wanted capacity first. When that fails for some time, the next capacity to try is
// halfway from it to one that a sequence is known to fit into, at first the peak of the order. A
// sequence that fits there is where the wanted capacity is tried from again.
bool Repair::start(const std::vector<OperatorIdx>& order) {
  const Bytes wanted = capacity_;
  std::vector<OperatorIdx> current = order;
  timeline_.set(order);
  const Bytes peak = timeline_.peak();
  Bytes fitted = peak;  // what the current sequence fits into
  Bytes next = wanted;
  for (std::size_t tries = 0; tries < limited(model_, kStarts) && !is_over(); ++tries) {
    counter_.take();
    capacity_ = next;
    std::vector<OperatorIdx> runs = tries % kTriesOfStep == 0 ? current : ruined(current);
    if (free_order_ && tries % kTriesOfStep > 0) move_runs(runs, 10 + below(100));
    if (mend(runs, model_.total * 4 + 1, static_cast<int>(below(3)))) {
      leave_out(runs);
      current = std::move(runs);
      fitted = next;
      if (fitted == wanted) {
        start_from(std::move(current));
        return true;
      }
      next = wanted;
    } else if (tries % kTriesOfStep == kTriesOfStep - 1) {
      next += (fitted - next) / 2;
    }
  }
  capacity_ = wanted;
  return false;
}

void Repair::start_from(std::vector<OperatorIdx> runs) {
  best_extra_ = extra_of(model_, runs);
  best_ = std::move(runs);
  has_runs_ = true;
}

// Ruin and recreate: a round takes out some re-runs, moves some runs if the order is free, makes
// the sequence fit again by insertions, and leaves out what is not needed then. It goes on from
// there if that costs no more, and at times if it costs a little more; it returns to the best
// sequence every so often. Every sequence that is kept fits.
void Repair::improve(std::int64_t enough) {
  std::vector<OperatorIdx> current = best_;
  std::int64_t current_extra = best_extra_;
  std::size_t fruitless = 0;
  for (std::size_t round = 1; best_extra_ > enough && fruitless < limited(model_, kFruitless);
       ++round, ++fruitless) {
    counter_.take();
    if (is_over()) return;
    std::vector<OperatorIdx> runs = ruined(current);
    if (free_order_) move_runs(runs, 10 + below(60));
    const int noise = one_in(5) ? 0 : 1 + static_cast<int>(below(2));
    if (!mend(runs, current_extra + current_extra / 4 + model_.total / 50, noise)) continue;
    leave_out(runs);
    const std::int64_t extra = extra_of(model_, runs);
    const std::int64_t allowed = one_in(30) ? current_extra + current_extra / 50 : current_extra;
    if (extra <= allowed) {
      current_extra = extra;
      current = runs;
    }
    if (extra < best_extra_) {
      best_extra_ = extra;
      best_ = std::move(runs);
      fruitless = 0;
    }
    if (round % kReturn == 0) {
      current = best_;
      current_extra = best_extra_;
    }
  }
}

// The re-runs of a window, or some of all, or now and then all of them are taken out.
std::vector<OperatorIdx> Repair::ruined(const std::vector<OperatorIdx>& runs) {
  const std::vector<std::uint8_t> is_rerun = list_reruns(model_, runs);
  std::vector<std::size_t> reruns;
  for (std::size_t slot = 0; slot < runs.size(); ++slot) {
    if (is_rerun[slot] != 0) reruns.push_back(slot);
  }
  if (reruns.empty()) return runs;
  const bool is_window = one_in(2);
  const std::size_t center = reruns[below(reruns.size())];
  const std::size_t width = 1 + below(std::max<std::size_t>(2, runs.size() / 3));
  const std::size_t share = 100 + below(600);  // in 1000
  const bool takes_all = one_in(30);
  std::vector<OperatorIdx> left;
  for (std::size_t slot = 0; slot < runs.size(); ++slot) {
    const std::size_t distance = slot < center ? center - slot : slot - center;
    const bool is_hit = takes_all || (is_window ? distance <= width : below(1000) < share);
    if (is_rerun[slot] == 0 || !is_hit) left.push_back(runs[slot]);
  }
  return left;
}

// Moves single runs as far as nothing else depends on it, where the excess does not grow.
void Repair::move_runs(std::vector<OperatorIdx>& runs, std::size_t moves) {
  timeline_.set(runs);
  double excess = timeline_.excess(capacity_);
  for (std::size_t i = 0; i < moves; ++i) {
    const std::size_t from = below(runs.size());
    const std::size_t first = find_limit(model_, runs, from, -1);
    const std::size_t last = find_limit(model_, runs, from, 1);
    const std::size_t to = first + below(last - first + 1);
    if (to == from) continue;
    const auto begin = runs.begin();
    const auto rotate = [&](std::size_t a, std::size_t b) {
      const auto at = [&](std::size_t slot) { return begin + static_cast<std::ptrdiff_t>(slot); };
      if (a < b) {
        std::rotate(at(a), at(a + 1), at(b + 1));
      } else {
        std::rotate(at(b), at(a), at(a + 1));
      }
    };
    rotate(from, to);
    timeline_.set(runs);
    const double found = timeline_.excess(capacity_);
    if (found < excess || (found == excess && one_in(2))) {
      excess = found;
    } else {
      rotate(to, from);
    }
  }
}

// Re-runs that are not needed are left out, the dearest first by and large.
void Repair::leave_out(std::vector<OperatorIdx>& runs) {
  timeline_.set(runs);
  const std::vector<std::uint8_t> is_rerun = list_reruns(model_, runs);
  std::vector<std::pair<double, std::size_t>> by_cost;
  for (std::size_t slot = 0; slot < runs.size(); ++slot) {
    if (is_rerun[slot] == 0) continue;
    const double cost = static_cast<double>(model_.cost[runs[slot]]) + least_cost_;
    by_cost.emplace_back(-cost * (512.0 + static_cast<double>(below(1024))), slot);
  }
  std::sort(by_cost.begin(), by_cost.end());
  for (const auto& [cost, slot] : by_cost) timeline_.remove_if_fits(slot, capacity_);
  runs = timeline_.runs();
}

// Greedy descent: at a step with too much load, a storage that only waits there is made again
// before its next read, so that its old copy can go. Each insertion lowers the excess, as others
// are not taken; so the loop ends, with a sequence that fits or without an insertion.
bool Repair::mend(std::vector<OperatorIdx>& runs, std::int64_t most, int noise) {
  std::int64_t extra = extra_of(model_, runs);
  const std::size_t steps = kMostSteps + runs.size();
  for (std::size_t step = 0; step < steps; ++step) {
    timeline_.set(runs);
    if (timeline_.peak() <= capacity_) return true;
    if (extra > most || is_over()) return false;
    for (std::size_t slot = runs.size(); slot-- > 0;) {
      first_run_[runs[slot]] = static_cast<std::int32_t>(slot);
    }
    const Insertion best = find_insertion(find_worst(noise), noise);
    if (best.operators.empty()) return false;
    runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(best.slot), best.operators.begin(),
                best.operators.end());
    extra += best.cost;
  }
  return false;
}

std::size_t Repair::find_worst(int noise) {
  std::size_t worst = 0;
  double most = -1;
  for (std::size_t slot = 0; slot < timeline_.slots(); ++slot) {
    const Bytes above = timeline_.load(slot) - capacity_;
    if (above <= 0) continue;
    const double weight = static_cast<double>(above) * (noise == 0 ? 1 : drawn_factor(1));
    if (weight <= most) continue;
    most = weight;
    worst = slot;
  }
  return worst;
}

// Three ways to make a storage again before its next read: its maker alone, with all that is absent
// there, or with what is absent of its own inputs. Or it is moved back.
Repair::Insertion Repair::find_insertion(std::size_t worst, int noise) {
  Insertion best;
  const OperatorIdx at = timeline_.run(worst);
  std::vector<OperatorIdx> operators;
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (!model_.can_leave(s) || model_.size[s] == 0 || model_.is_maker(at, s)) continue;
    const std::int64_t need = timeline_.next_need(s, worst);
    if (need <= static_cast<std::int64_t>(worst)) continue;
    if (is_over()) break;
    const auto slot = static_cast<std::size_t>(need);
    for (int way = model_.can_move(s) ? -1 : 0; way < (model_.can_drop[s] != 0 ? 3 : 0); ++way) {
      operators.assign(1, way < 0 ? model_.move_of(s) : model_.maker[s]);
      if (way > 0) list_inputs(model_.maker[s], slot, way == 1, operators);
      if (way > 0 && operators.size() == 1) break;
      std::sort(operators.begin(), operators.end(),
                [&](OperatorIdx a, OperatorIdx b) { return first_run_[a] < first_run_[b]; });
      const double growth = timeline_.excess_after(slot, operators, capacity_);
      if (growth >= 0) continue;
      std::int64_t cost = 0;
      for (const OperatorIdx op : operators) cost += model_.cost[op];
      const double gain = -growth / (static_cast<double>(cost) + least_cost_) * drawn_factor(noise);
      if (gain > best.gain) best = {slot, operators, cost, gain};
    }
  }
  return best;
}

// Adds the makers of what is absent before a slot and needed to run `op` there; if `is_deep`, what
// these need too.
void Repair::list_inputs(OperatorIdx op, std::size_t slot, bool is_deep,
                         std::vector<OperatorIdx>& found) {
  ++round_;
  met_[op] = round_;
  for (std::size_t i = 0; i < (is_deep ? found.size() : 1) && found.size() < kMostInputs; ++i) {
    for (const StorageIdx s : model_.reads[found[i]]) {
      const OperatorIdx maker = model_.maker[s];
      if (maker == kNoOperator || met_[maker] == round_ || model_.again[maker] == 0) continue;
      if (timeline_.is_kept_across(s, slot)) continue;
      met_[maker] = round_;
      found.push_back(maker);
    }
  }
}

}  // namespace memplan::again
