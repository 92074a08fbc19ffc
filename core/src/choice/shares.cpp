#include "choice/shares.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "util/random.h"

namespace memplan::choice {

namespace {

using Values = std::vector<double>;

// Large problems have fewer steps: so many items, moments and rivals are looked at in all.
constexpr double kWorkOfSteps = 3e8;
// Steps after which the error is measured, which costs about as much as one.
constexpr std::size_t kStepsOfRound = 64;
// The error that is small enough: sums of thousands of doubles are not much more exact; and a dive
// only wants to know which share of an item is large.
constexpr double kEnough = 1e-10;
constexpr double kEnoughInNoise = 1e-5;
// A new start from an average is worth it where the error has shrunk to this part of that at the
// last start, or the run is this part of all steps: too early, averages are of little use.
constexpr double kBetter = 0.3;
constexpr double kLong = 0.4;

// Open items of a unit that are live together. One is chosen at most, or just one.
struct Rivals {
  std::vector<Index> items;
  bool is_needed;
};

std::vector<Rivals> list_rivals(const Items& items, const std::vector<Fixed>& fixed) {
  std::vector<Rivals> found;
  for (Index unit = 0; unit < items.units(); ++unit) {
    std::vector<Index> live;
    bool is_listed = true;  // what is live is part of rivals that are in the list
    bool is_needed = items.must[unit] != 0;
    for (const Index i : items.of_unit[unit]) is_needed &= fixed[i] != Fixed::kIn;
    const auto list = [&]() {
      if (!is_listed && (live.size() > 1 || is_needed)) found.push_back({live, is_needed});
      is_listed = true;
    };
    for (const Index i : items.of_unit[unit]) {
      if (fixed[i] != Fixed::kOpen) continue;
      const auto has_ended = [&](Index other) { return items.end[other] <= items.start[i]; };
      if (std::any_of(live.begin(), live.end(), has_ended)) {
        list();
        live.erase(std::remove_if(live.begin(), live.end(), has_ended), live.end());
      }
      live.push_back(i);
      is_listed = false;
    }
    list();
  }
  return found;
}

class Shares {
 public:
  Shares(const Items& items, const std::vector<Fixed>& fixed, const Reach& reach, double noise,
         std::uint64_t seed)
      : items_(items),
        rivals_(list_rivals(items, fixed)),
        enough_(noise > 0 ? kEnoughInNoise : kEnough) {
    for (Index i = 0; i < items.size(); ++i) {
      if (fixed[i] == Fixed::kOpen) open_.push_back(i);
      if (fixed[i] == Fixed::kIn) inside_ += static_cast<double>(items.worth[i]);
      if (fixed[i] == Fixed::kOpen)
        dearest_ = std::max(dearest_, static_cast<double>(items.worth[i]));
    }
    find_rooms(fixed, reach);
    const auto all = static_cast<std::size_t>(items.size());
    worth_.assign(all, 0);
    need_.assign(all, 0);
    Random random(seed);
    for (const Index i : open_) {
      worth_[i] = static_cast<double>(items.worth[i]) / dearest_;
      worth_[i] *= 1 + noise * static_cast<double>(random.below(1024)) / 1024;
      need_[i] = static_cast<double>(items.bytes[i]) / most_[items.memory[i]];
    }
    find_paces();
  }

  Relaxed find(const Relaxed& from, std::size_t most, Counter& counter) {
    double work = static_cast<double>(open_.size() + room_.size() + 1);
    for (const Rivals& each : rivals_) work += static_cast<double>(each.items.size());
    const auto steps = static_cast<std::size_t>(
        std::min(static_cast<double>(most), std::max(100.0, kWorkOfSteps / work)));
    start(from);
    for (std::size_t step = 1; step <= steps && !counter.take(); ++step) {
      make_step();
      work_ += work;
      if (step % kStepsOfRound != 0 && step != steps) continue;
      if (end_round(step)) break;
    }
    return write();
  }

 private:
  void start(const Relaxed& from) {
    Values share(worth_.size(), 0);
    Values price(room_.size(), 0);
    if (!from.share.empty()) {
      for (const Index i : open_) share[i] = from.share[i];
      for (Index memory = 0; memory < items_.memories(); ++memory) {
        for (Index t = 0; t < items_.moments; ++t) {
          price[rule(memory, t)] = from.exact[memory][t] * most_[memory] / dearest_;
        }
      }
      for (std::size_t r = 0; r < rivals_.size(); ++r) {
        price[first_ + r] = from.rival[rivals_[r].items.back()] / dearest_;
      }
      weight_ = from.weight;
    }
    start_again(std::move(share), std::move(price));
  }

  // By rule: the moments of each memory, and then rivals.
  std::size_t rule(Index memory, Index t) const {
    return static_cast<std::size_t>(memory) * (static_cast<std::size_t>(items_.moments) + 1) +
           static_cast<std::size_t>(t);
  }

  void find_rooms(const std::vector<Fixed>& fixed, const Reach& reach) {
    for (Index memory = 0; memory < items_.memories(); ++memory) {
      std::vector<Bytes> room = reach.most[memory];
      for (Index i = 0; i < items_.size(); ++i) {
        if (fixed[i] != Fixed::kIn || items_.memory[i] != memory) continue;
        for (Index t = items_.start[i]; t < items_.end[i]; ++t) room[t] -= items_.bytes[i];
      }
      Bytes most = 1;
      for (const Bytes each : room) most = std::max(most, each);
      most_.push_back(static_cast<double>(most));
      for (const Bytes each : room) {
        room_.push_back(static_cast<double>(std::max<Bytes>(0, each)) / most_.back());
      }
      room_.push_back(1);  // at the end of the last moment, where there is nothing
    }
    first_ = room_.size();
    room_.resize(first_ + rivals_.size(), 1);
  }

  // How far an item and a price may move: the less, the more they meet.
  void find_paces() {
    pace_.assign(worth_.size(), 0);
    for (const Index i : open_)
      pace_[i] = need_[i] * static_cast<double>(items_.end[i] - items_.start[i]);
    for (const Rivals& each : rivals_) {
      for (const Index i : each.items) pace_[i] += 1;
    }
    for (double& each : pace_) each = 1 / std::max(each, 1e-12);
    Values ones(worth_.size(), 0);
    for (const Index i : open_) ones[i] = 1;
    sum_needs(ones, pace_of_price_);
    for (double& each : pace_of_price_) each = 1 / std::max(each, 1e-12);
  }

  // What shares of items need of each rule.
  void sum_needs(const Values& share, Values& sums) const {
    sums.assign(room_.size(), 0);
    for (const Index i : open_) {
      const double need = need_[i] * share[i];
      sums[rule(items_.memory[i], items_.start[i])] += need;
      sums[rule(items_.memory[i], items_.end[i])] -= need;
    }
    for (Index memory = 0; memory < items_.memories(); ++memory) {
      for (Index t = 1; t <= items_.moments; ++t) {
        sums[rule(memory, t)] += sums[rule(memory, t - 1)];
      }
    }
    for (std::size_t r = 0; r < rivals_.size(); ++r) {
      for (const Index i : rivals_[r].items) sums[first_ + r] += share[i];
    }
  }

  // What each item pays at these prices.
  void sum_prices(const Values& price, Values& paid) {
    paid.assign(worth_.size(), 0);
    before_.assign(first_, 0);  // by moment: the sum of the prices before it
    for (Index memory = 0; memory < items_.memories(); ++memory) {
      for (Index t = 1; t <= items_.moments; ++t) {
        before_[rule(memory, t)] = before_[rule(memory, t - 1)] + price[rule(memory, t - 1)];
      }
    }
    for (const Index i : open_) {
      const Index memory = items_.memory[i];
      paid[i] = need_[i] *
                (before_[rule(memory, items_.end[i])] - before_[rule(memory, items_.start[i])]);
    }
    for (std::size_t r = 0; r < rivals_.size(); ++r) {
      for (const Index i : rivals_[r].items) paid[i] += price[first_ + r];
    }
  }

  void make_step() {
    for (const Index i : open_) {
      const double share =
          std::clamp(share_[i] + pace_[i] / weight_ * (worth_[i] - paid_[i]), 0.0, 1.0);
      ahead_[i] = 2 * share - share_[i];
      share_[i] = share;
      sum_of_shares_[i] += share;
    }
    sum_needs(ahead_, needs_);
    for (std::size_t r = 0; r < room_.size(); ++r) {
      price_[r] += pace_of_price_[r] * weight_ * (needs_[r] - room_[r]);
      if (!is_equation(r)) price_[r] = std::max(0.0, price_[r]);
      sum_of_prices_[r] += price_[r];
    }
    sum_prices(price_, paid_);
    ++steps_;
  }

  bool is_equation(std::size_t r) const { return r >= first_ && rivals_[r - first_].is_needed; }

  // Measures the shares and prices, and their averages; true if they are good enough.
  bool end_round(std::size_t step) {
    Values share = sum_of_shares_;
    Values price = sum_of_prices_;
    for (double& each : share) each /= static_cast<double>(steps_);
    for (double& each : price) each /= static_cast<double>(steps_);
    const double now = measure(share_, price_);
    const double average = measure(share, price);
    const double error = std::min(now, average);
    if (error < enough_) return true;
    if (error >= kBetter * last_error_ &&
        static_cast<double>(steps_) <= kLong * static_cast<double>(step)) {
      return false;
    }
    last_error_ = error;
    if (average > now) {
      share = share_;
      price = price_;
    }
    weigh(share, price);
    start_again(std::move(share), std::move(price));
    return false;
  }

  // How far shares break rules, or how far what they are worth is from the bound of the prices.
  double measure(const Values& share, const Values& price) {
    sum_needs(share, needs_);
    double error = 0;
    double bound = 0;
    for (std::size_t r = 0; r < room_.size(); ++r) {
      const double over = needs_[r] - room_[r];
      error = std::max(error, is_equation(r) ? std::abs(over) : over);
      bound += price[r] * room_[r];
    }
    sum_prices(price, spent_);
    double worth = 0;
    for (const Index i : open_) {
      bound += std::max(0.0, worth_[i] - spent_[i]);
      worth += worth_[i] * share[i];
    }
    error = std::max(error, std::abs(bound - worth) / (1 + std::abs(bound)));
    if (bound < best_bound_) {
      best_bound_ = bound;
      best_price_ = price;
    }
    if (error < best_error_) {
      best_error_ = error;
      best_share_ = share;
    }
    return error;
  }

  // Where prices moved farther than shares, they may move farther.
  void weigh(const Values& share, const Values& price) {
    double far = 0;
    double far_of_price = 0;
    for (const Index i : open_) {
      far += (share[i] - first_share_[i]) * (share[i] - first_share_[i]) / pace_[i];
    }
    for (std::size_t r = 0; r < room_.size(); ++r) {
      const double moved = price[r] - first_price_[r];
      far_of_price += moved * moved / pace_of_price_[r];
    }
    if (far > 1e-24 && far_of_price > 1e-24) {
      weight_ = std::sqrt(weight_ * std::sqrt(far_of_price / far));
    }
  }

  void start_again(Values share, Values price) {
    share_ = std::move(share);
    price_ = std::move(price);
    first_share_ = share_;
    first_price_ = price_;
    sum_of_shares_.assign(share_.size(), 0);
    sum_of_prices_.assign(price_.size(), 0);
    ahead_.assign(share_.size(), 0);
    steps_ = 0;
    sum_prices(price_, paid_);
  }

  Relaxed write() const {
    Relaxed found;
    found.taken.assign(items_.bytes.size(), 0);
    if (!best_share_.empty()) {
      for (const Index i : open_) {
        found.taken[i] = static_cast<Bytes>(static_cast<double>(items_.bytes[i]) * best_share_[i]);
      }
    }
    found.share = best_share_.empty() ? share_ : best_share_;
    const Values& prices = best_price_.empty() ? price_ : best_price_;
    found.rival.assign(worth_.size(), 0);
    for (std::size_t r = 0; r < rivals_.size(); ++r) {
      found.rival[rivals_[r].items.back()] = prices[first_ + r] * dearest_;
    }
    found.weight = weight_;
    found.work = work_;
    found.worth = inside_ + dearest_ * best_bound_;
    const double highest = static_cast<double>(std::int64_t{1} << 60);
    for (Index memory = 0; memory < items_.memories(); ++memory) {
      found.price.emplace_back(static_cast<std::size_t>(items_.moments), 0);
      found.exact.emplace_back(static_cast<std::size_t>(items_.moments), 0);
      for (Index t = 0; t < items_.moments; ++t) {
        const double price = prices[rule(memory, t)] * dearest_ / most_[memory];
        found.exact[memory][t] = price;
        found.price[memory][t] = static_cast<std::int64_t>(std::min(highest, price));
      }
    }
    return found;
  }

  const Items& items_;
  std::vector<Rivals> rivals_;
  std::vector<Index> open_;
  double dearest_ = 1;  // of which worths are shares
  Values most_;         // by memory: of which needs are shares
  Values worth_;        // by item
  Values need_;
  Values room_;            // by rule
  std::size_t first_ = 0;  // rule of rivals
  Values pace_;
  Values pace_of_price_;
  double weight_ = 1;
  double enough_;  // error
  double work_ = 0;
  double inside_ = 0;  // worth of what is in
  Values share_;
  Values price_;
  Values ahead_;
  Values needs_;
  Values paid_;
  Values spent_;
  Values before_;
  Values sum_of_shares_;  // since the last start
  Values sum_of_prices_;
  Values first_share_;
  Values first_price_;
  std::size_t steps_ = 0;
  double last_error_ = std::numeric_limits<double>::infinity();
  double best_error_ = std::numeric_limits<double>::infinity();
  double best_bound_ = std::numeric_limits<double>::infinity();
  Values best_share_;
  Values best_price_;
};

}  // namespace

bool has_rivals(const Items& items, const std::vector<Fixed>& fixed) {
  const std::vector<Rivals> rivals = list_rivals(items, fixed);
  return std::any_of(rivals.begin(), rivals.end(),
                     [](const Rivals& each) { return each.items.size() > 1; });
}

Relaxed relax_units(const Items& items, const std::vector<Fixed>& fixed, const Reach& reach,
                    const Relaxed& from, std::size_t steps, double noise, std::uint64_t seed,
                    Counter& counter) {
  return Shares(items, fixed, reach, noise, seed).find(from, steps, counter);
}

}  // namespace memplan::choice
