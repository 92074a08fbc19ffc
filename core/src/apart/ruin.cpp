#include "apart/ruin.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "util/bit_scan.h"
#include "util/random.h"

namespace memplan::apart {

namespace {

constexpr std::size_t kMostOut = 8;      // buffers that are taken out at once
constexpr std::int64_t kRefresh = 256;   // rounds between two looks at the temperature
constexpr std::int64_t kOfBarred = 100;  // what an illegal overlap costs, in mean costs
constexpr int kCoolings = 64;            // of the temperature, from 1 to 0.12 mean costs
constexpr double kCooling = 0.967413;    // of one step
// Sums over 4096 neighbours and 32 reserved ranges do not overflow.
constexpr std::int64_t kMostTotalHere = std::int64_t{1} << 40;
constexpr std::int64_t kImpossible = std::int64_t{1} << 57;  // more than all neighbours together
constexpr std::size_t kMostReserved = 32;
constexpr std::int64_t kEntriesOfNode = 16;  // about as many are swept in a microsecond
constexpr double kLn2 = 0.6931471805599453;

// An exponential number of mean 1. The logarithm is a polynomial, as that of the library may differ
// between machines in the last bit.
double exponential(Random& random) {
  const std::uint64_t number = random.below(std::uint64_t{1} << 53) + 1;
  const std::int32_t whole = highest_bit(number);
  const double part =
      static_cast<double>(number) / static_cast<double>(std::uint64_t{1} << whole) - 1;
  return kLn2 * (53 - whole - part - 0.3431 * part * (1 - part));
}

class Ruin {
 public:
  Ruin(const Model& model, const std::vector<Bytes>& offsets, std::uint64_t seed,
       order::Counter& counter)
      : model_(model), problem_(model.problem), counter_(counter), random_(seed), at_(offsets) {
    best_ = offsets;
    int shift = 0;
    while ((model.total >> shift) > kMostTotalHere) ++shift;
    std::int64_t total = 0;
    for (const Penalty& each : model.pairs) {
      price_.push_back(std::max<std::int64_t>(1, each.cost >> shift));
      total += price_.back();
    }
    mean_ = std::max<std::int64_t>(1, total / std::max<std::int64_t>(1, price_.size()));
    barred_ = kOfBarred * mean_;
    for (const std::int64_t price : price_) barred_ = std::max(barred_, price);
    is_out_.assign(model.size.size(), 0);
    for (BufferIdx b = 0; b < model.count(); ++b) {
      if (can_move(b)) movable_.push_back(b);
    }
    for (const PairIdx k : met_pairs(model, offsets)) cost_ += price_[k];
    best_cost_ = cost_;
  }

  std::vector<Bytes> run() {
    if (movable_.empty()) return best_;
    double temperature = static_cast<double>(mean_);
    const std::int64_t budget = counter_.left();
    int step = 0;
    for (std::int64_t round = 0; best_cost_ > 0; ++round) {
      if (round % kRefresh == 0) {
        if (counter_.is_over()) break;
        const double share = progress(budget);
        for (; step < kCoolings && share * kCoolings >= step + 1; ++step) temperature *= kCooling;
        list_hot();
        if (hot_.empty()) break;
      }
      if (try_change(temperature)) break;
    }
    return best_;
  }

 private:
  struct Event {
    Bytes offset;
    std::int64_t change;
  };

  bool can_move(BufferIdx b) const {
    return problem_.size[b] > 0 && problem_.pin_of(b) == kNoOffset &&
           problem_.group_of(b) == kNoGroup && !model_.neighbours[b].empty();
  }

  // How much of the budget is used.
  double progress(std::int64_t budget) {
    const auto used = static_cast<double>(budget - counter_.left());
    return std::max(used / static_cast<double>(budget), counter_.stopper().share());
  }

  std::int64_t weight(const Neighbour& each) const {
    return each.pair == kBarred ? barred_ : price_[each.pair];
  }

  // What a buffer pays, to those that are not taken out.
  std::int64_t paid(BufferIdx b) const {
    std::int64_t cost = 0;
    for (const Neighbour& each : model_.neighbours[b]) {
      if (is_out_[each.other] == 0 && meet(problem_, at_, b, each.other)) cost += weight(each);
    }
    return cost;
  }

  void list_hot() {
    hot_.clear();
    for (const BufferIdx b : movable_) {
      if (paid(b) > 0) hot_.push_back(b);
    }
  }

  BufferIdx drawn(const std::vector<BufferIdx>& some) {
    return some[static_cast<std::size_t>(random_.below(some.size()))];
  }
  bool happens(std::uint64_t percent) { return random_.below(100) < percent; }

  void take_out(BufferIdx b) {
    is_out_[b] = 1;
    out_.push_back(b);
  }

  // Chooses a connected handful; those that meet are preferred.
  void choose() {
    out_.clear();
    const std::size_t many = 1 + static_cast<std::size_t>(random_.below(kMostOut));
    take_out(happens(80) ? drawn(hot_) : drawn(movable_));
    while (out_.size() < many) {
      const BufferIdx from = drawn(out_);
      const std::vector<Neighbour>& row = model_.neighbours[from];
      BufferIdx next = -1;
      for (int tries = 0; tries < 6; ++tries) {
        const BufferIdx other = row[static_cast<std::size_t>(random_.below(row.size()))].other;
        if (is_out_[other] != 0 || !can_move(other)) continue;
        const bool is_liked = meet(problem_, at_, from, other) || happens(30);
        if (next < 0 || is_liked) next = other;
        if (is_liked) break;
      }
      if (next < 0) return;
      take_out(next);
    }
  }

  bool try_change(double temperature) {
    choose();
    for (const BufferIdx b : out_) is_out_[b] = 0;
    std::int64_t before = 0;
    std::int64_t barred = 0;  // how many overlaps come that no plan may have
    for (const BufferIdx b : out_) {
      before += paid(b);
      barred -= count_barred(b);
      is_out_[b] = 1;
    }
    std::vector<Bytes>& old = old_;
    old.clear();
    for (const BufferIdx b : out_) old.push_back(at_[b]);
    order_ = out_;
    if (random_.below(3) == 0) {
      std::sort(order_.begin(), order_.end(), [this](BufferIdx a, BufferIdx b) {
        return problem_.size[a] != problem_.size[b] ? problem_.size[a] > problem_.size[b] : a < b;
      });
    } else {
      for (std::size_t i = order_.size() - 1; i > 0; --i) {
        std::swap(order_[i], order_[static_cast<std::size_t>(random_.below(i + 1))]);
      }
    }
    std::int64_t after = 0;
    std::int64_t work = 0;
    for (const BufferIdx b : order_) {
      after += put_back(b);
      barred += count_barred(b);
      work += static_cast<std::int64_t>(model_.neighbours[b].size());
    }
    for (const BufferIdx b : out_) is_out_[b] = 0;
    const auto worse = static_cast<double>(after - before);
    if (worse <= 0 || worse < temperature * exponential(random_)) {
      cost_ += after - before;
      barred_now_ += barred;
      if (cost_ < best_cost_ && barred_now_ == 0) {
        best_cost_ = cost_;
        best_ = at_;
      }
    } else {
      for (std::size_t i = 0; i < out_.size(); ++i) at_[out_[i]] = old[i];
    }
    return counter_.take(1 + work / kEntriesOfNode);
  }

  // From one multiple of the alignment on, before another, it costs more to begin.
  void add_event(BufferIdx b, Bytes lower, Bytes upper, std::int64_t cost) {
    const Bytes unit = problem_.alignment_of(b);
    lower += 1 - problem_.size[b];
    if (unit > 1) {
      lower = lower <= 0 ? 0 : (lower + unit - 1) / unit * unit;
      upper = (upper + unit - 1) / unit * unit;
    }
    events_.push_back({lower, cost});
    events_.push_back({upper, -cost});
  }

  // Places a buffer where it costs least, at an end of a stretch of offsets that cost the same;
  // returns what it pays.
  std::int64_t put_back(BufferIdx b) {
    events_.clear();
    for (const Reserved& each : problem_.reserved)
      add_event(b, each.lower, each.upper, kImpossible);
    for (const Neighbour& each : model_.neighbours[b]) {
      if (is_out_[each.other] != 0) continue;
      const Bytes lower = at_[each.other];
      add_event(b, lower, lower + problem_.size[each.other], weight(each));
    }
    std::sort(events_.begin(), events_.end(),
              [](const Event& x, const Event& y) { return x.offset < y.offset; });
    const Bytes unit = problem_.alignment_of(b);
    const Bytes top = (model_.capacity - problem_.size[b]) / unit * unit;
    std::int64_t cost = 0;
    std::int64_t least = kImpossible;
    std::uint64_t ties = 0;
    Bytes chosen = at_[b];
    auto event = events_.begin();
    for (Bytes offset = 0; offset <= top;) {
      for (; event != events_.end() && event->offset <= offset; ++event) cost += event->change;
      const Bytes next = event == events_.end() ? top + unit : std::min(event->offset, top + unit);
      if (cost < least) ties = 0;
      if (cost <= least && cost < kImpossible) {
        least = cost;
        if (random_.below(++ties) == 0) chosen = offset;
        if (random_.below(++ties) == 0) chosen = next - unit;
      }
      offset = next;
    }
    at_[b] = chosen;
    is_out_[b] = 0;
    return least;
  }

  // How many overlaps a buffer has that no plan may have, with those that are not taken out.
  std::int64_t count_barred(BufferIdx b) const {
    std::int64_t count = 0;
    for (const Neighbour& each : model_.neighbours[b]) {
      const bool is_there = each.pair == kBarred && is_out_[each.other] == 0;
      count += is_there && meet(problem_, at_, b, each.other) ? 1 : 0;
    }
    return count;
  }

  const Model& model_;
  const Problem& problem_;
  order::Counter& counter_;
  Random random_;
  std::vector<Bytes> at_;
  std::vector<Bytes> best_;
  std::vector<std::int64_t> price_;  // by pair: its cost, in units so coarse that sums are small
  std::int64_t mean_ = 1;
  std::int64_t barred_ = 0;      // what an overlap costs that no plan may have
  std::int64_t barred_now_ = 0;  // such overlaps now
  std::int64_t cost_ = 0;        // now, with such overlaps
  std::int64_t best_cost_ = 0;   // of the best plan
  std::vector<BufferIdx> movable_;
  std::vector<BufferIdx> hot_;  // those that paid at the last look
  std::vector<char> is_out_;
  // Scratch.
  std::vector<BufferIdx> out_;
  std::vector<BufferIdx> order_;
  std::vector<Bytes> old_;
  std::vector<Event> events_;
};

}  // namespace

std::vector<Bytes> ruin_and_recreate(const Model& model, const std::vector<Bytes>& offsets,
                                     std::uint64_t seed, order::Counter& counter) {
  // Parts of buffers may share addresses in ways that the neighbours do not tell.
  if (!model.knows_pairs() || model.has_windows) return offsets;
  if (model.problem.reserved.size() > kMostReserved) return offsets;
  return Ruin(model, offsets, seed, counter).run();
}

}  // namespace memplan::apart
