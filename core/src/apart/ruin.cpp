#include "apart/ruin.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/blocks.h"
#include "util/bit_scan.h"
#include "util/random.h"

namespace memplan::apart {

namespace {

constexpr std::size_t kMostOut = 8;     // buffers that are taken out at once
constexpr std::int64_t kRefresh = 256;  // rounds between two looks at the temperature
constexpr int kCoolings = 64;           // of the temperature, from 1 to 0.12 mean costs
constexpr double kCooling = 0.967413;   // of one step
// Sums over 4096 neighbours and 32 reserved ranges do not overflow, nor reach what is impossible.
constexpr std::int64_t kMostTotalHere = std::int64_t{1} << 40;
constexpr std::int64_t kImpossible = std::int64_t{1} << 50;  // more than all pairs cost
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

// Buffers and reserved ranges by an offset of theirs, ascending.
class Sorted {
 public:
  void add(Bytes offset) {
    const auto last = static_cast<std::int32_t>(list_.size());
    list_.push_back(last);
    place_.push_back(last);
    offset_.push_back(offset);
    sink(last);
  }

  void set(std::int32_t item, Bytes offset) {
    offset_[item] = offset;
    const std::int32_t place = sink(place_[item]);
    const auto last = static_cast<std::int32_t>(list_.size()) - 1;
    for (std::int32_t k = place; k < last && offset_[list_[k + 1]] < offset; ++k) swap(k);
  }

  // Calls `use` with each of some items and its offset, ascending.
  template <typename Use>
  void visit(const std::vector<std::int32_t>& items, Use use) {
    chosen_.resize(list_.size() / 64 + 1);
    for (const std::int32_t item : items) {
      chosen_[place_[item] / 64] |= std::uint64_t{1} << (place_[item] % 64);
    }
    for (std::size_t word = 0; word < chosen_.size(); ++word) {
      for (std::uint64_t& bits = chosen_[word]; bits != 0; bits &= bits - 1) {
        const std::int32_t item = list_[word * 64 + static_cast<std::size_t>(lowest_bit(bits))];
        use(item, offset_[item]);
      }
    }
  }

  Bytes offset(std::int32_t item) const { return offset_[item]; }

 private:
  // Moves what is at a place down as far as it belongs; returns its place then.
  std::int32_t sink(std::int32_t place) {
    const Bytes offset = offset_[list_[place]];
    for (; place > 0 && offset_[list_[place - 1]] > offset; --place) swap(place - 1);
    return place;
  }

  void swap(std::int32_t place) {
    std::swap(list_[place], list_[place + 1]);
    place_[list_[place]] = place;
    place_[list_[place + 1]] = place + 1;
  }

  std::vector<std::int32_t> list_;
  std::vector<std::int32_t> place_;    // by item, in the list
  std::vector<Bytes> offset_;          // by item
  std::vector<std::uint64_t> chosen_;  // by place: a bit, 0 between two visits
};

class Ruin {
 public:
  Ruin(const Model& model, const std::vector<Bytes>& offsets, std::uint64_t seed, Counter& counter)
      : model_(model), problem_(model.problem), counter_(counter), random_(seed), at_(offsets) {
    best_ = offsets;
    paying_.resize(model.size.size());
    set_prices();
    is_out_.assign(model.size.size(), 0);
    weight_.assign(model.size.size() + problem_.reserved.size(), 0);
    for (BufferIdx b = 0; b < model.count(); ++b) {
      if (can_move(b)) movable_.push_back(b);
      lower_.add(at_[b]);
      upper_.add(at_[b] + problem_.size[b]);
    }
    auto item = static_cast<std::size_t>(model.count());
    for (const Reserved& each : problem_.reserved) {
      lower_.add(each.lower);
      upper_.add(each.upper);
      weight_[item++] = kImpossible;
    }
    for (const PairIdx k : met_pairs(model, offsets)) cost_ += price_[k];
    best_cost_ = cost_;
  }

  std::vector<Bytes> run() {
    if (movable_.empty()) return best_;
    const std::int64_t budget = counter_.left();
    double temperature = static_cast<double>(mean_);
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
  struct Payer {
    BufferIdx other;
    std::int64_t price;
  };
  struct Event {
    Bytes offset;
    std::int64_t change;
  };
  void set_prices() {
    int shift = 0;
    while ((model_.total >> shift) > kMostTotalHere) ++shift;
    std::int64_t total = 0;
    for (const Penalty& each : model_.pairs) {
      price_.push_back(std::max<std::int64_t>(1, each.cost >> shift));
      total += price_.back();
    }
    mean_ = std::max<std::int64_t>(1, total / std::max<std::int64_t>(1, price_.size()));
    for (PairIdx k = 0; k < static_cast<PairIdx>(price_.size()); ++k) {
      const Penalty& each = model_.pairs[k];
      paying_[each.first].push_back({each.second, price_[k]});
      paying_[each.second].push_back({each.first, price_[k]});
    }
  }

  bool can_move(BufferIdx b) const {
    return problem_.size[b] > 0 && problem_.pin_of(b) == kNoOffset &&
           problem_.group_of(b) == kNoGroup && !model_.neighbours[b].empty();
  }

  // How much of the budget is used.
  double progress(std::int64_t budget) {
    const auto used = static_cast<double>(budget - counter_.left());
    return std::max(used / static_cast<double>(budget), counter_.stopper().share());
  }

  // What a buffer pays, to those that are not taken out.
  std::int64_t paid(BufferIdx b) const {
    const Bytes lower = at_[b];
    const Bytes upper = lower + problem_.size[b];
    std::int64_t cost = 0;
    for (const Payer& each : paying_[b]) {
      if (at_[each.other] >= upper || upper_.offset(each.other) <= lower) continue;
      if (is_out_[each.other] == 0) cost += each.price;
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

  // The order in which those taken out are put back: large ones first, or any.
  void arrange() {
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
  }

  // What those pay that are taken out, each pair once.
  std::int64_t paid_by_out() {
    std::int64_t cost = 0;
    for (const BufferIdx b : out_) is_out_[b] = 0;
    for (const BufferIdx b : out_) {
      cost += paid(b);
      is_out_[b] = 1;
    }
    return cost;
  }

  void move(BufferIdx b, Bytes offset) {
    at_[b] = offset;
    lower_.set(b, offset);
    upper_.set(b, offset + problem_.size[b]);
  }

  bool try_change(double temperature) {
    choose();
    const std::int64_t before = paid_by_out();
    old_.clear();
    for (const BufferIdx b : out_) old_.push_back(at_[b]);
    arrange();
    // The change is taken if it costs no more than this.
    const std::int64_t most =
        before + static_cast<std::int64_t>(temperature * exponential(random_));
    std::int64_t after = 0;
    std::int64_t work = 0;
    for (const BufferIdx b : order_) {
      after += put_back(b);
      work += static_cast<std::int64_t>(items_.size());
      if (after > most) break;
    }
    if (after > most) {
      for (std::size_t i = 0; i < out_.size(); ++i) move(out_[i], old_[i]);
    } else {
      cost_ += after - before;
      if (cost_ < best_cost_) {
        best_cost_ = cost_;
        best_ = at_;
      }
    }
    for (const BufferIdx b : out_) is_out_[b] = 0;
    return counter_.take(1 + work / kEntriesOfNode);
  }

  // Lists from where on it costs more and less to begin a buffer, before and behind others.
  void list_events(BufferIdx b) {
    items_.clear();
    for (const Neighbour& each : model_.neighbours[b]) {
      if (is_out_[each.other] != 0) continue;
      weight_[each.other] = each.pair == kBarred ? kImpossible : price_[each.pair];
      items_.push_back(each.other);
    }
    for (std::size_t k = 0; k < problem_.reserved.size(); ++k) {
      items_.push_back(model_.count() + static_cast<BufferIdx>(k));
    }
    list_from(&lower_, 1 - problem_.size[b], problem_.alignment_of(b), &dearer_);
    list_from(&upper_, 0, problem_.alignment_of(b), &cheaper_);
  }

  void list_from(Sorted* sorted, Bytes shift, Bytes unit, std::vector<Event>* events) {
    events->clear();
    sorted->visit(items_, [&](std::int32_t item, Bytes offset) {
      events->push_back({offset + shift, weight_[item]});
    });
    if (unit > 1) {
      for (Event& each : *events) each.offset = first_from(each.offset, unit);
    }
    events->push_back({kMaxBytes, 0});
  }

  // The first multiple from an offset on.
  static Bytes first_from(Bytes offset, Bytes unit) {
    return offset <= 0 ? 0 : align_up(offset, unit);
  }

  // Places a buffer where it costs least, at an end of a stretch of offsets that cost the same;
  // returns what it pays.
  std::int64_t put_back(BufferIdx b) {
    list_events(b);
    const Bytes unit = problem_.alignment_of(b);
    const Bytes top = (model_.capacity() - problem_.size[b]) / unit * unit;
    std::int64_t cost = 0;
    std::int64_t least = kImpossible;
    ends_.clear();
    auto dearer = dearer_.begin();
    auto cheaper = cheaper_.begin();
    for (Bytes offset = 0; offset <= top;) {
      for (; dearer->offset <= offset; ++dearer) cost += dearer->change;
      for (; cheaper->offset <= offset; ++cheaper) cost -= cheaper->change;
      const Bytes next = std::min({dearer->offset, cheaper->offset, top + unit});
      if (cost < least) {
        ends_.clear();
        least = cost;
      }
      if (cost == least && cost < kImpossible) {
        ends_.push_back(offset);
        ends_.push_back(next - unit);
      }
      offset = next;
    }
    if (!ends_.empty()) move(b, ends_[static_cast<std::size_t>(random_.below(ends_.size()))]);
    is_out_[b] = 0;
    return least;
  }

  const Model& model_;
  const Problem& problem_;
  Counter& counter_;
  Random random_;
  std::vector<Bytes> at_;
  std::vector<Bytes> best_;
  std::vector<std::int64_t> price_;  // by pair: its cost, in units so coarse that sums are small
  std::int64_t mean_ = 1;
  std::int64_t cost_ = 0;                   // now
  std::int64_t best_cost_ = 0;              // of the best plan
  std::vector<std::vector<Payer>> paying_;  // by buffer: the pairs it is of
  std::vector<BufferIdx> movable_;
  std::vector<BufferIdx> hot_;  // those that paid at the last look
  std::vector<char> is_out_;
  // Items are the buffers and, behind them, the reserved ranges.
  Sorted lower_;
  Sorted upper_;
  std::vector<std::int64_t> weight_;  // by item: what it costs to meet it, for this placement
  // Scratch.
  std::vector<BufferIdx> out_;
  std::vector<BufferIdx> order_;
  std::vector<Bytes> old_;
  std::vector<std::int32_t> items_;
  std::vector<Event> dearer_;
  std::vector<Event> cheaper_;
  std::vector<Bytes> ends_;
};

}  // namespace

std::vector<Bytes> ruin_and_recreate(const Model& model, const std::vector<Bytes>& offsets,
                                     std::uint64_t seed, Counter& counter) {
  // Parts of buffers may share addresses in ways that the neighbours do not tell.
  if (!model.knows_pairs() || model.has_windows) return offsets;
  if (model.problem.reserved.size() > kMostReserved) return offsets;
  return Ruin(model, offsets, seed, counter).run();
}

}  // namespace memplan::apart
