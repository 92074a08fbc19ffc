#include "again/backward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "again/timeline.h"
#include "util/bit_scan.h"
#include "util/random.h"

namespace memplan::again {

namespace {

constexpr std::int64_t kStepAbove = 8;  // how long a step with too much counts, and any other one
constexpr std::int64_t kOtherStep = 1;
constexpr std::size_t kChoices = 60;  // re-runs that are tried at the front of one tail
constexpr std::size_t kRounds = 200;  // of re-runs before one operator
constexpr double kNoGain = 1e12;      // puts what frees nothing behind what does
constexpr std::int64_t kMostArea = std::int64_t{1} << 61;

using Bits = std::vector<std::uint64_t>;

bool has(const Bits& bits, std::int32_t at) { return (bits[at >> 6] >> (at & 63) & 1) != 0; }
void put(Bits& bits, std::int32_t at) { bits[at >> 6] |= std::uint64_t{1} << (at & 63); }
void take_out(Bits& bits, std::int32_t at) { bits[at >> 6] &= ~(std::uint64_t{1} << (at & 63)); }

// The end of a sequence.
struct Tail {
  Bits needed;              // storages that are to be there before it
  Bits done;                // operators that run in it, if they need not run before it
  Bits charged;             // of these: has to run before it once more, which is in the cost
  Bytes bytes = 0;          // of what is needed
  std::int64_t origin = 0;  // the sum of size * time of making, of what is needed
  std::int64_t cost = 0;
  std::uint64_t hash = 0;
  std::int32_t last = -1;  // its first run, in the list of all runs
};

struct Move {
  double key = 0;                // the least is the best
  std::size_t from = 0;          // which tail
  OperatorIdx op = kNoOperator;  // what is put at its front; -1: nothing
};

}  // namespace

int usual_byte_price(const Model& model, Bytes capacity) {
  int price = 0;
  const auto steps = static_cast<double>(model.workspace.size() + 1) * kStepAbove;
  const double most = static_cast<double>(std::max<Bytes>(capacity, 1)) * steps;
  for (double left = static_cast<double>(model.total + 1); left < most; left *= 2) --price;
  for (double left = static_cast<double>(model.total + 1); left >= most * 2; left /= 2) ++price;
  return price;
}

namespace {

// Goes through an order from its last operator to its first one, and keeps the ends of some
// sequences.
//
// Invariant: the runs of a tail fit, and have all that they read if the storages that it needs are
// there before it. Before the next operator of the order is put at the front, storages that are
// needed may be made there too: they are not there while that operator runs then. So what was
// dropped is known when the load is, and nothing is made again in vain: it is the machine of
// simulate.h seen from the other end. If first runs may be late, an operator whose results are
// made later, and that nothing needs before, does not run at its place.
//
// Tails are compared by what their re-runs cost, and by the bytes that they need, each for the time
// from where it is made in the order, at a price.
class BackwardSearch {
 public:
  BackwardSearch(const Model& model, const std::vector<OperatorIdx>& order, Bytes capacity,
                 const BackwardOptions& options, Counter& counter)
      : model_(model),
        order_(order),
        capacity_(capacity),
        options_(options),
        counter_(counter),
        place_(order.size()),
        first_user_(model.size.size(), kNoOperator),
        time_(order.size() + 1, 0),
        is_fixed_(order.size(), 0) {
    for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<std::int32_t>(i);
    list_fixed();
    list_times();
    while (total_bytes() >> scale_ > kMostArea / (time_.back() + 1)) ++scale_;
    price_ = std::ldexp(1.0, options.price + scale_);
  }

  std::optional<std::vector<OperatorIdx>> run() {
    std::vector<Tail> tails(1);
    start(tails.front());
    for (at_ = static_cast<std::int32_t>(order_.size()) - 1; at_ >= 0; --at_) {
      tails = go_on(std::move(tails));
      if (tails.empty()) return std::nullopt;
    }
    const Tail* best = &tails.front();
    for (const Tail& tail : tails) {
      if (tail.cost < best->cost) best = &tail;
    }
    std::vector<OperatorIdx> runs;
    for (std::int32_t at = best->last; at >= 0; at = runs_[at].second) {
      runs.push_back(runs_[at].first);
    }
    return runs;
  }

 private:
  // Operators that run at their place in any case: if first runs keep the order, if others wait for
  // them but read nothing of them, or if they touch what is not made by one operator.
  void list_fixed() {
    std::vector<std::int32_t> met(order_.size(), -1);
    for (OperatorIdx op = 0; op < model_.operators(); ++op) {
      is_fixed_[op] = options_.free_order && model_.again[op] != 0 ? 0 : 1;
      for (const StorageIdx s : model_.makes[op]) {
        for (const OperatorIdx reader : model_.readers[s]) met[reader] = op;
      }
      for (const OperatorIdx other : model_.after[op]) {
        if (met[other] != op) is_fixed_[op] = 1;
      }
    }
    for (const OperatorIdx op : order_) {
      for (const StorageIdx s : model_.reads[op]) {
        if (model_.maker[s] != kNoOperator || model_.given[s] != 0) continue;
        is_fixed_[op] = 1;
        if (first_user_[s] == kNoOperator) first_user_[s] = op;
      }
    }
  }

  void list_times() {
    Timeline timeline(model_);
    timeline.set(order_);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      time_[i + 1] = time_[i] + (timeline.load(i) > capacity_ ? kStepAbove : kOtherStep);
    }
  }

  Bytes total_bytes() const {
    return std::accumulate(model_.size.begin(), model_.size.end(), Bytes{0});
  }

  void start(Tail& tail) const {
    tail.needed.assign(model_.size.size() / 64 + 1, 0);
    tail.done.assign(order_.size() / 64 + 1, 0);
    tail.charged = tail.done;
    for (StorageIdx s = 0; s < model_.storages(); ++s) {
      const bool is_made = model_.maker[s] != kNoOperator || first_user_[s] != kNoOperator;
      const bool is_there = is_made || (model_.given[s] != 0 && !model_.stays(s));
      if (model_.wanted[s] != 0 && is_there) need(tail, s);
    }
  }

  std::int64_t time_of(StorageIdx s) const {
    const OperatorIdx first = model_.maker[s] != kNoOperator ? model_.maker[s] : first_user_[s];
    return first == kNoOperator ? 0 : time_[place_[first]];
  }

  void need(Tail& tail, StorageIdx s) const {
    put(tail.needed, s);
    tail.bytes += model_.size[s];
    tail.origin += scaled(model_.size[s]) * time_of(s);
    tail.hash ^= mix(static_cast<std::uint64_t>(s));
  }
  void free(Tail& tail, StorageIdx s) const {
    take_out(tail.needed, s);
    tail.bytes -= model_.size[s];
    tail.origin -= scaled(model_.size[s]) * time_of(s);
    tail.hash ^= mix(static_cast<std::uint64_t>(s));
  }
  std::int64_t scaled(Bytes bytes) const { return bytes >> scale_; }

  // What its cost may come to: holding what is needed, from where it is made in the order on.
  double key_of(std::int64_t cost, Bytes bytes, std::int64_t origin) const {
    const std::int64_t area = scaled(bytes) * time_[at_] - origin;
    return static_cast<double>(cost) + price_ * static_cast<double>(area);
  }

  // What would be needed before a run, and what it would cost, without a new tail.
  struct Effect {
    Bytes load = 0;
    Bytes bytes = 0;
    std::int64_t origin = 0;
    std::int64_t cost = 0;
  };

  Effect effect_of(const Tail& tail, OperatorIdx op) const {
    Effect effect{model_.base + model_.workspace[op] + tail.bytes, tail.bytes, tail.origin,
                  tail.cost};
    const bool is_turn = op == order_[at_];
    const auto leave = [&](StorageIdx s) {
      effect.bytes -= model_.size[s];
      effect.origin -= scaled(model_.size[s]) * time_of(s);
    };
    for (const StorageIdx s : model_.makes[op]) {
      if (has(tail.needed, s)) {
        leave(s);
      } else {
        effect.load += model_.size[s];
      }
    }
    for (const StorageIdx s : model_.reads[op]) {
      const bool begins = is_turn && first_user_[s] == op;
      if (has(tail.needed, s)) {
        if (begins) leave(s);
        continue;
      }
      effect.load += model_.size[s];
      if (begins) continue;
      effect.bytes += model_.size[s];
      effect.origin += scaled(model_.size[s]) * time_of(s);
      const OperatorIdx maker = model_.maker[s];
      if (maker != kNoOperator && has(tail.done, maker) && !has(tail.charged, maker) &&
          !makes_needed(tail, maker)) {
        effect.cost += model_.cost[maker];
      }
    }
    if (!is_turn && is_certain(tail, op)) effect.cost += model_.cost[op];
    return effect;
  }

  bool makes_needed(const Tail& tail, OperatorIdx op) const {
    for (const StorageIdx s : model_.makes[op]) {
      if (has(tail.needed, s)) return true;
    }
    return false;
  }

  // Whether an operator that runs now has to run once more before it.
  bool is_certain(const Tail& tail, OperatorIdx op) const {
    if (is_fixed_[op] != 0) return true;
    for (const StorageIdx s : model_.makes[op]) {
      for (const OperatorIdx reader : model_.readers[s]) {
        if (place_[reader] <= at_ && !has(tail.done, reader)) return true;
      }
    }
    return false;
  }

  void apply(Tail& tail, OperatorIdx op) {
    const Effect effect = effect_of(tail, op);
    const bool is_turn = op == order_[at_];
    const bool is_certain_again = !is_turn && is_certain(tail, op);
    for (const StorageIdx s : model_.makes[op]) {
      if (has(tail.needed, s)) free(tail, s);
    }
    for (const StorageIdx s : model_.reads[op]) {
      const bool begins = is_turn && first_user_[s] == op;
      if (begins && has(tail.needed, s)) free(tail, s);
      if (begins || has(tail.needed, s)) continue;
      need(tail, s);
      const OperatorIdx maker = model_.maker[s];
      if (maker != kNoOperator) take_out(tail.charged, maker);
    }
    if (is_fixed_[op] == 0) {
      put(tail.done, op);
      if (is_certain_again) put(tail.charged, op);
    }
    tail.cost = effect.cost;
    runs_.emplace_back(op, tail.last);
    tail.last = static_cast<std::int32_t>(runs_.size()) - 1;
  }

  // One operator of the order: each tail gets it at its front, if it has to run there and fits.
  // Before that, what is needed later may be made there, from the cheapest on.
  std::vector<Tail> go_on(std::vector<Tail> tails) {
    const OperatorIdx op = order_[at_];
    std::vector<Tail> next;
    std::vector<double> keys;  // of next
    std::unordered_set<std::uint64_t> seen;
    for (std::size_t round = 0; round < kRounds && !tails.empty(); ++round) {
      if (counter_.is_over()) return {};
      std::vector<Move> ends;
      std::vector<Move> moves;
      for (std::size_t i = 0; i < tails.size(); ++i) {
        const Tail& tail = tails[i];
        const bool is_over = is_fixed_[op] == 0 && has(tail.done, op) && !makes_needed(tail, op);
        Bytes above = 0;
        if (is_over) {
          ends.push_back({key_of(tail.cost, tail.bytes, tail.origin), i, kNoOperator});
        } else {
          const Effect effect = effect_of(tail, op);
          above = std::max<Bytes>(effect.load - capacity_, 0);
          if (above == 0) ends.push_back({key_of(effect.cost, effect.bytes, effect.origin), i, op});
        }
        list_moves(tail, i, above, moves);
      }
      for (const Move& end : ends) add_end(tails[end.from], end, next, keys);
      const auto by_key = [](const Move& a, const Move& b) { return a.key < b.key; };
      std::stable_sort(moves.begin(), moves.end(), by_key);
      std::vector<Tail> more;
      for (const Move& move : moves) {
        if (more.size() == options_.width) break;
        if (next.size() == options_.width && move.key >= worst(keys)) break;
        Tail tail = tails[move.from];
        apply(tail, move.op);
        if (options_.thorough) shrink(tail);
        if (seen.insert(tail.hash).second) more.push_back(std::move(tail));
      }
      tails = std::move(more);
    }
    return next;
  }

  // Makes at the front of a tail what needs nothing else that is not needed anyway.
  void shrink(Tail& tail) {
    for (bool is_less = true; is_less;) {
      is_less = false;
      for (std::size_t word = tail.needed.size(); word-- > 0;) {
        for (std::uint64_t left = tail.needed[word]; left != 0;) {
          const std::int32_t bit = highest_bit(left);
          left &= ~(std::uint64_t{1} << bit);
          const auto s = static_cast<StorageIdx>(word * 64) + bit;
          if (model_.can_drop[s] == 0 || model_.maker[s] == order_[at_]) continue;
          const OperatorIdx op = model_.maker[s];
          bool adds = false;
          for (const StorageIdx read : model_.reads[op]) adds |= !has(tail.needed, read);
          if (adds || effect_of(tail, op).load > capacity_) continue;
          apply(tail, op);
          is_less = true;
        }
      }
    }
  }

  static double worst(const std::vector<double>& keys) {
    return *std::max_element(keys.begin(), keys.end());
  }

  void add_end(const Tail& tail, const Move& end, std::vector<Tail>& next,
               std::vector<double>& keys) {
    std::size_t at = next.size();
    if (at == options_.width) {
      at = static_cast<std::size_t>(std::max_element(keys.begin(), keys.end()) - keys.begin());
      if (keys[at] <= end.key) return;
    } else {
      next.emplace_back();
      keys.push_back(0);
    }
    next[at] = tail;
    keys[at] = end.key;
    if (end.op != kNoOperator) apply(next[at], end.op);
  }

  // What may be made at the front of a tail: what frees most for its cost. If the next operator
  // fits already, only what is worth its price.
  void list_moves(const Tail& tail, std::size_t from, Bytes above, std::vector<Move>& moves) {
    struct Choice {
      double rank;
      double key;
      Bytes freed;
      OperatorIdx op;
    };
    std::vector<Choice> choices;
    const double key = key_of(tail.cost, tail.bytes, tail.origin);
    const auto consider = [&](OperatorIdx op) {
      const Effect effect = effect_of(tail, op);
      if (effect.load > capacity_) return;
      const double found = key_of(effect.cost, effect.bytes, effect.origin);
      static bool any = getenv("ANY") != nullptr;
      if (!any) {
        if (above == 0 && found >= key) return;
      }
      const Bytes freed = tail.bytes - effect.bytes;
      const double rise = found - key;
      const double useful = static_cast<double>(std::min(freed, std::max<Bytes>(above, 1)));
      const double rank = rise <= 0 ? rise : useful > 0 ? rise / useful : rise * kNoGain;
      choices.push_back({rank, found, freed, op});
    };
    for (std::size_t word = 0; word < tail.needed.size(); ++word) {
      for (std::uint64_t left = tail.needed[word]; left != 0; left &= left - 1) {
        const auto s = static_cast<StorageIdx>(word * 64) + lowest_bit(left);
        if (model_.can_drop[s] == 0 || model_.maker[s] == order_[at_]) continue;
        const auto made = model_.makes[model_.maker[s]];
        if (made.size() > 1 && first_needed(tail, made) != s) continue;
        consider(model_.maker[s]);
      }
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.rank < b.rank; });
    if (choices.size() > kChoices) choices.resize(kChoices);
    for (const Choice& choice : choices) {
      const Bytes left = std::max<Bytes>(above - choice.freed, 0);
      const double rate = choices.front().rank;
      const double rest = rate > 0 ? rate * static_cast<double>(left) : 0.0;
      moves.push_back({choice.key + rest, from, choice.op});
    }
  }

  StorageIdx first_needed(const Tail& tail, order::Lists<StorageIdx>::Row made) const {
    for (const StorageIdx s : made) {
      if (has(tail.needed, s)) return s;
    }
    return -1;
  }

  const Model& model_;
  const std::vector<OperatorIdx>& order_;
  Bytes capacity_;
  const BackwardOptions& options_;
  Counter& counter_;
  double price_ = 1;  // of an area: a power of two, so that products are not rounded
  int scale_ = 0;     // areas are of so many bits less, so that they are below kMostArea
  std::vector<std::int32_t> place_;      // by operator, in the order
  std::vector<OperatorIdx> first_user_;  // by storage without a maker that is not given
  std::vector<std::int64_t> time_;       // by place
  std::vector<std::uint8_t> is_fixed_;   // by operator
  std::vector<std::pair<OperatorIdx, std::int32_t>> runs_;  // each with the one after it
  std::int32_t at_ = 0;
};

}  // namespace

std::optional<std::vector<OperatorIdx>> run_backward(const Model& model,
                                                     const std::vector<OperatorIdx>& order,
                                                     Bytes capacity, const BackwardOptions& options,
                                                     Counter& counter) {
  counter.take();
  return BackwardSearch(model, order, capacity, options, counter).run();
}

}  // namespace memplan::again
