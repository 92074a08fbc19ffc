#include "choice/prices.h"

#include <algorithm>
#include <map>
#include <utility>

namespace memplan::choice {

namespace {

// Large problems have fewer rounds: so many needs and prices are looked at in all, but at least in
// three times kPatience rounds, so that steps halve a few times.
constexpr std::size_t kWork = 20000000;
constexpr int kPatience = 20;  // rounds without a better bound, after which steps halve
constexpr std::size_t kLeastRounds = 3 * kPatience;
// The part of the last direction that stays: the directions of about three rounds count.
constexpr double kInertia = 0.7;
// Items of which more fit side by side are not counted: the count of such an item is mostly its
// share of the bytes, for which there is a price already.
constexpr std::int64_t kMostCount = 40;

// Above all that items are worth together, which is below 2^58 (items.cpp), and sums of two of
// these do not overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 60;
// Bytes of items and memories with counts: times kMostCount + 1 they stay below 2^62.
constexpr Bytes kMostCounted = Bytes{1} << 56;

// A product or sum of numbers from 0 to kMost, or kMost where it is more.
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return a != 0 && b > kMost / a ? kMost : a * b;
}
std::int64_t add(std::int64_t a, std::int64_t b) { return std::min(kMost, a + b); }

// What a rule allows at each moment of its memory, and what each item needs of it while it is live.
struct Rule {
  Index memory;
  std::vector<std::int64_t> room;
  std::vector<std::int64_t> need;  // 0 for items of other memories, and for large ones
  // Of large items, which need another number of bytes at each moment from their start on.
  std::vector<std::pair<Index, std::vector<std::int64_t>>> large;
};

// The counts in which the dearest items just count as one: k + 1 of their size are too many.
std::vector<std::int64_t> choose_counts(const Items& items, const std::vector<Fixed>& fixed,
                                        Index memory) {
  std::map<std::int64_t, std::int64_t> worth_of;
  for (Index i = 0; i < items.size(); ++i) {
    if (items.memory[i] != memory || fixed[i] != Fixed::kOpen || items.bytes[i] == 0) continue;
    const std::int64_t side_by_side = items.capacity[memory] / items.bytes[i];
    if (side_by_side <= kMostCount) worth_of[side_by_side] += items.worth[i] >> 8;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> dearest;
  for (const auto& each : worth_of) dearest.emplace_back(-each.second, each.first);
  std::sort(dearest.begin(), dearest.end());
  std::vector<std::int64_t> counts;
  for (const auto& each : dearest) {
    if (counts.size() < kMostCounts) counts.push_back(each.second);
  }
  return counts;
}

std::vector<Rule> make_rules(const Items& items, const std::vector<Fixed>& fixed,
                             const Reach& reach) {
  std::vector<Rule> rules;
  const auto add = [&](Index memory, std::vector<std::int64_t> room, const auto& need) {
    Rule rule{memory, std::move(room), std::vector<std::int64_t>(items.bytes.size(), 0), {}};
    for (Index i = 0; i < items.size(); ++i) {
      if (items.memory[i] == memory) rule.need[i] = need(items.bytes[i]);
    }
    rules.push_back(std::move(rule));
  };
  for (Index memory = 0; memory < items.memories(); ++memory) {
    add(memory, reach.small[memory], [](Bytes bytes) { return bytes; });
    for (Index i = 0; i < items.size(); ++i) {
      if (items.memory[i] != memory || reach.beside[i].empty()) continue;
      std::vector<std::int64_t> need;
      for (const Bytes beside : reach.beside[i]) {
        const auto t = items.start[i] + static_cast<Index>(need.size());
        need.push_back(reach.small[memory][t] - beside);
      }
      rules.back().need[i] = 0;
      rules.back().large.emplace_back(i, std::move(need));
    }
  }
  for (Index memory = 0; memory < items.memories(); ++memory) {
    const Bytes capacity = items.capacity[memory];
    if (capacity > kMostCounted) continue;
    for (const std::int64_t count : choose_counts(items, fixed, memory)) {
      add(memory, std::vector<std::int64_t>(reach.small[memory].size(), count),
          [&](Bytes bytes) { return (count + 1) * std::min(bytes, capacity) / (capacity + 1); });
    }
  }
  return rules;
}

// What an item needs of a rule, as a share of what there is.
struct Need {
  Index item;
  double share;
};

class Subgradient {
 public:
  Subgradient(const Items& items, const std::vector<Fixed>& fixed, const Units& units,
              const std::vector<Rule>& rules)
      : items_(items), fixed_(fixed), units_(units), rules_(rules) {
    for (const Rule& rule : rules) {
      // A price is that of as much as there is of it, so that all of them are of one kind.
      double most = 1;
      for (const std::int64_t room : rule.room) most = std::max(most, static_cast<double>(room));
      scale_.push_back(1 / most);
      needs_.emplace_back();
      for (Index i = 0; i < items.size(); ++i) {
        if (rule.need[i] == 0 || fixed[i] == Fixed::kOut) continue;
        needs_.back().push_back({i, static_cast<double>(rule.need[i]) * scale_.back()});
      }
      work_ += needs_.back().size() + rule.room.size();
      for (const auto& each : rule.large) work_ += each.second.size();
    }
  }

  double scale(std::size_t rule) const { return scale_[rule]; }

  // Improves prices, by rule and moment; `reached` is what a known choice is worth.
  void improve(Table<double>& price, double reached, std::size_t most, Counter& counter) {
    Table<double> best = price;
    double least = -1;
    double step = 0.5;  // of Polyak's, which leads to `reached` where the bound is linear
    int idle = 0;
    const std::size_t rounds = std::min(most, std::max(kLeastRounds, kWork / work_));
    Table<double> slack;
    Table<double> direction;
    for (std::size_t round = 0; round < rounds && !counter.take(); ++round) {
      const double bound = measure(price, slack);
      if (least < 0 || bound < least * (1 - 1e-9)) {
        least = bound;
        best = price;
        idle = 0;
      } else if (++idle >= kPatience) {
        step /= 2;
        idle = 0;
        price = best;
        direction.clear();
        continue;
      }
      double length = 0;
      for (std::size_t r = 0; r < slack.size(); ++r) {
        for (std::size_t t = 0; t < slack[r].size(); ++t) {
          // What is left and has no price cannot get cheaper.
          if (slack[r][t] > 0 && price[r][t] <= 0) slack[r][t] = 0;
          // A part of the last direction stays, so that prices do not swing to and fro.
          if (!direction.empty()) slack[r][t] += kInertia * direction[r][t];
          length += slack[r][t] * slack[r][t];
        }
      }
      if (length == 0 || bound <= reached) break;
      const double pace = step * (bound - reached) / length;
      for (std::size_t r = 0; r < slack.size(); ++r) {
        for (std::size_t t = 0; t < slack[r].size(); ++t) {
          price[r][t] = std::max(0.0, price[r][t] - pace * slack[r][t]);
        }
      }
      direction = slack;
    }
    price = std::move(best);
  }

 private:
  // The bound at these prices, and what is left of each rule at each moment, as a share.
  double measure(const Table<double>& price, Table<double>& slack) const {
    const auto moments = static_cast<std::size_t>(items_.moments);
    double bound = 0;
    slack.assign(rules_.size(), std::vector<double>(moments + 1, 0));
    std::vector<double> profit(items_.worth.begin(), items_.worth.end());
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      std::vector<double> sums(moments + 1, 0);
      for (std::size_t t = 0; t < moments; ++t) {
        const double room = static_cast<double>(rules_[r].room[t]) * scale_[r];
        sums[t + 1] = sums[t] + price[r][t];
        bound += price[r][t] * room;
        slack[r][t] = room;
      }
      for (const Need& need : needs_[r]) {
        profit[need.item] -=
            need.share * (sums[items_.end[need.item]] - sums[items_.start[need.item]]);
      }
      for (const auto& each : rules_[r].large) {
        for (std::size_t at = 0; at < each.second.size(); ++at) {
          profit[each.first] -= static_cast<double>(each.second[at]) * scale_[r] *
                                price[r][static_cast<std::size_t>(items_.start[each.first]) + at];
        }
      }
    }
    std::vector<std::uint8_t> is_taken(profit.size(), 0);
    std::vector<Index> best;
    for (Index unit = 0; unit < units_.count(); ++unit) {
      bound += units_.evaluate(unit, profit, best);
      for (const Index i : best) is_taken[i] = 1;
    }
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] != Fixed::kIn) continue;
      bound += profit[i];
      is_taken[i] = 1;
    }
    for (std::size_t r = 0; r < rules_.size(); ++r) subtract_needs(r, is_taken, slack[r]);
    return bound;
  }

  void subtract_needs(std::size_t r, const std::vector<std::uint8_t>& is_taken,
                      std::vector<double>& slack) const {
    std::vector<double> change(slack.size(), 0);
    for (const Need& need : needs_[r]) {
      if (is_taken[need.item] == 0) continue;
      change[items_.start[need.item]] += need.share;
      change[items_.end[need.item]] -= need.share;
    }
    for (const auto& each : rules_[r].large) {
      if (is_taken[each.first] == 0) continue;
      for (std::size_t at = 0; at < each.second.size(); ++at) {
        slack[static_cast<std::size_t>(items_.start[each.first]) + at] -=
            static_cast<double>(each.second[at]) * scale_[r];
      }
    }
    slack.pop_back();
    double used = 0;
    for (std::size_t t = 0; t < slack.size(); ++t) {
      used += change[t];
      slack[t] -= used;
    }
  }

  const Items& items_;
  const std::vector<Fixed>& fixed_;
  const Units& units_;
  const std::vector<Rule>& rules_;
  std::vector<double> scale_;
  std::vector<std::vector<Need>> needs_;  // by rule
  std::size_t work_ = 1;                  // of one round
};

// What the prices of whole numbers prove. Nothing is worth as much as kMost, so that what an item
// pays beyond it changes nothing. Prices that cost more altogether are no good: nothing has a price
// then.
Prices evaluate(const Items& items, const std::vector<Fixed>& fixed, const Units& units,
                const std::vector<Rule>& rules, const Table<std::int64_t>& price) {
  Prices found;
  found.byte.assign(price.begin(), price.begin() + items.memories());
  std::vector<std::int64_t> paid(items.bytes.size(), 0);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    std::vector<std::int64_t> sums{0};
    for (std::size_t t = 0; t < rules[r].room.size(); ++t) {
      found.constant = add(found.constant, multiply(price[r][t], rules[r].room[t]));
      sums.push_back(add(sums.back(), price[r][t]));
    }
    for (Index i = 0; i < items.size(); ++i) {
      const std::int64_t sum = sums[items.end[i]] - sums[items.start[i]];
      paid[i] = add(paid[i], multiply(rules[r].need[i], sum));
    }
    for (const auto& each : rules[r].large) {
      for (std::size_t at = 0; at < each.second.size(); ++at) {
        const auto t = static_cast<std::size_t>(items.start[each.first]) + at;
        paid[each.first] = add(paid[each.first], multiply(each.second[at], price[r][t]));
      }
    }
  }
  for (std::size_t r = found.byte.size(); r < rules.size(); ++r) {
    const bool is_free =
        std::all_of(price[r].begin(), price[r].end(), [](std::int64_t each) { return each == 0; });
    if (is_free) continue;
    found.rules.push_back({rules[r].memory,
                           rules[r].room[0],
                           {rules[r].need.begin(), rules[r].need.end()},
                           price[r]});
  }
  if (found.constant >= kMost) {
    found.rules.clear();
    for (std::vector<std::int64_t>& each : found.byte) std::fill(each.begin(), each.end(), 0);
    found.constant = 0;
    std::fill(paid.begin(), paid.end(), 0);
  }
  for (Index i = 0; i < items.size(); ++i) found.profit.push_back(items.worth[i] - paid[i]);
  found.bound = bound_of(found, items, fixed, units);
  return found;
}

}  // namespace

std::int64_t bound_of(const Prices& prices, const Items& items, const std::vector<Fixed>& fixed,
                      const Units& units) {
  // Below -kMost, it is all the same; above it cannot overflow, as all worths are below 2^58.
  std::int64_t bound = prices.constant;
  std::vector<Index> best;
  for (Index unit = 0; unit < units.count(); ++unit) {
    bound = std::max(-kMost, bound + units.evaluate(unit, prices.profit, best));
  }
  for (Index i = 0; i < items.size(); ++i) {
    if (fixed[i] == Fixed::kIn) bound = std::max(-kMost, bound + prices.profit[i]);
  }
  return bound;
}

Prices find_prices(const Items& items, const std::vector<Fixed>& fixed, const Units& units,
                   const Reach& reach, const Relaxed& relaxed, std::int64_t reached,
                   std::size_t rounds, Counter& counter) {
  const std::vector<Rule> rules = make_rules(items, fixed, reach);
  const auto moments = static_cast<std::size_t>(items.moments);
  Table<std::int64_t> whole(rules.size(), std::vector<std::int64_t>(moments, 0));
  std::copy(relaxed.price.begin(), relaxed.price.end(), whole.begin());
  Prices of_bytes = evaluate(items, fixed, units, rules, whole);
  if (rules.size() == 1 || of_bytes.bound <= reached) return of_bytes;
  Subgradient search(items, fixed, units, rules);
  Table<double> price(rules.size(), std::vector<double>(moments, 0));
  for (std::size_t r = 0; r < relaxed.price.size(); ++r) {
    for (std::size_t t = 0; t < moments; ++t) {
      price[r][t] = static_cast<double>(relaxed.price[r][t]) / search.scale(r);
    }
  }
  search.improve(price, static_cast<double>(reached), rounds, counter);
  const auto highest = static_cast<double>(kMost);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    for (std::size_t t = 0; t < moments; ++t) {
      whole[r][t] = static_cast<std::int64_t>(std::min(highest, price[r][t] * search.scale(r)));
    }
  }
  Prices found = evaluate(items, fixed, units, rules, whole);
  return found.bound < of_bytes.bound ? found : of_bytes;
}

}  // namespace memplan::choice
