#include "memplan/choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "choice/flow.h"
#include "choice/items.h"
#include "choice/prices.h"
#include "choice/shares.h"
#include "choice/sweep.h"
#include "choice/units.h"
#include "util/failure.h"
#include "util/random.h"

namespace memplan {

namespace choice {

namespace {

// None of these numbers changes what is proved: they share out the work. Work is counted in labels
// of sweeps, rounds of prices and steps of relaxations, and never in seconds.

// The labels that a sweep keeps at a moment, round by round. Small networks end in the first; each
// round is ten to twenty times the work of the one before, so that the last one is most of it.
constexpr std::size_t kWidths[] = {200, 4000, 40000, 400000};
// A window has few open items, and its sweep is mostly whole with so many labels.
constexpr std::size_t kWidthOfWindow = 500;
// Windows get as many nodes as the sweep of their round, but enough to be worth a try.
constexpr std::int64_t kNodesOfWindows = 200000;
constexpr int kWindows = 200;       // without a better choice, after which a wider sweep is tried
constexpr std::size_t kLeast = 20;  // open items of a window: a sweep over fewer finds nothing new
constexpr std::size_t kMore = 100;  // at most so many more by chance; twice as many in each round

// Prices decide items, which makes the next prices sharper; later repetitions decide hardly any.
constexpr int kRoundsOfFixing = 3;
// Rounds of prices before the first sweep, which suffice where a sweep is easy, and after it.
constexpr std::size_t kRoundsAtFirst = 100;
constexpr std::size_t kRoundsOfPrices = 2000;
// Steps of the relaxation with units, from nothing and from the relaxation before.
constexpr std::size_t kStepsAtFirst = 8000;
constexpr std::size_t kStepsAgain = 5000;

// Dives have seeds, and four amounts of noise in turn: the least, and 4, 16 and 64 times that. A
// share of worth as small as the least only decides between items that are worth about the same.
constexpr std::uint64_t kDives = 16;
constexpr double kNoise = 1e-4;
// In a round of a dive, kWhole or more of an item decides it; so does kMuch, of the next ones, for
// one open item in kFew. In kRoundsOfDive such rounds, all but 5 % of items that are never whole
// are decided.
constexpr double kWhole = 0.98;
constexpr double kMuch = 0.7;
constexpr std::size_t kFew = 20;
constexpr int kRoundsOfDive = 60;
// Little changes from round to round, so that a round has ten measurements of the error
// (shares.cpp) only, and the start of a dive, where the noise is new, four times as many.
constexpr std::size_t kStepsOfDive = 640;
constexpr std::size_t kStepsOfNoise = 4 * kStepsOfDive;
// Of all dives, in items and rules that are looked at: less than one first relaxation has.
constexpr double kWorkOfDives = 2.5e8;

class ChoiceSearch {
 public:
  ChoiceSearch(const ChoiceProblem& problem, const ChoiceOptions& options)
      : problem_(problem),
        items_(make_items(problem)),
        stopper_(options.budget.seconds, options.interrupt),
        counter_(options.budget.nodes, stopper_),
        fixed_(problem.bytes.size(), Fixed::kOpen) {}

  Choice solve() {
    if (!propagate()) {
      result_.status = Status::kInfeasible;
      return finish();
    }
    start(false);
    search(0);
    if (!is_closed() && has_rivals(items_, fixed_)) {  // the flow suffices where few rivals matter
      start(true);
      if (!is_closed()) take_by_dives();
      search(0);
    }
    for (std::size_t round = 1; round < std::size(kWidths); ++round) search(round);
    return finish();
  }

 private:
  bool is_closed() {
    if (result_.status == Status::kInfeasible) return true;
    return (has_choice() && best_ >= bound_) || counter_.is_over();
  }
  bool has_choice() const { return best_ >= 0; }

  void take(const std::vector<std::uint8_t>& chosen) {
    const std::int64_t worth = worth_of(problem_, chosen);
    if (worth <= best_) return;
    best_ = worth;
    result_.chosen = chosen;
  }

  void start(bool has_units) {
    has_units_ = has_units;
    find_relaxed();
    take_greedily(4);
    find_root(kRoundsAtFirst);
    take_by_profit();
  }

  // One round: a sweep, better prices if it is the first one, and windows.
  void search(std::size_t round) {
    if (is_closed()) return;
    const std::int64_t before = counter_.used();
    sweep_all(kWidths[round]);
    if (!is_closed() && round == 0) find_root(kRoundsOfPrices);
    if (!is_closed()) search_windows(round, counter_.used() - before);
  }

  // Decides what follows from what is decided; false if what must be chosen does not fit.
  bool propagate() {
    decide_what_follows();
    if (!find_reach(items_, fixed_, reach_)) return false;
    return !has_conflict() && !Units(items_, fixed_).is_impossible();
  }
  void decide_what_follows() {
    for (bool is_new = true; is_new;) {
      is_new = drop_rivals() || drop_refused() || fix_last_of_units();
      if (!is_new) is_new = drop_what_does_not_fit();
    }
  }

  // Whether items that are in exclude each other.
  bool has_conflict() const {
    for (const std::vector<Index>& unit : items_.of_unit) {
      Index last = -1;  // the one that is in and begins before the next one
      for (const Index i : unit) {
        if (fixed_[i] != Fixed::kIn) continue;
        if (last >= 0 && items_.meet(last, i)) return true;
        last = i;
      }
    }
    return std::any_of(problem_.refused.begin(), problem_.refused.end(), [&](const auto& set) {
      return !set.empty() &&
             std::all_of(set.begin(), set.end(), [&](Index i) { return fixed_[i] == Fixed::kIn; });
    });
  }

  bool drop_rivals() {
    bool is_new = false;
    for (const std::vector<Index>& unit : items_.of_unit) {
      if (unit.size() == 1) continue;
      for (const Index i : unit) {
        if (fixed_[i] != Fixed::kIn) continue;
        for (const Index other : unit) {
          if (fixed_[other] != Fixed::kOpen || !items_.meet(i, other)) continue;
          fixed_[other] = Fixed::kOut;
          is_new = true;
        }
      }
    }
    return is_new;
  }

  bool drop_refused() {
    bool is_new = false;
    for (const std::vector<std::int32_t>& set : problem_.refused) {
      Index open = -1;
      std::size_t inside = 0;
      for (const Index i : set) {
        if (fixed_[i] == Fixed::kIn) ++inside;
        if (fixed_[i] == Fixed::kOpen) open = i;
      }
      if (open < 0 || inside + 1 != set.size()) continue;
      fixed_[open] = Fixed::kOut;
      is_new = true;
    }
    return is_new;
  }

  // A unit that must have an item has the only one that is open.
  bool fix_last_of_units() {
    bool is_new = false;
    for (Index unit = 0; unit < items_.units(); ++unit) {
      if (items_.must[unit] == 0) continue;
      Index open = -1;
      bool is_sole = true;
      for (const Index i : items_.of_unit[unit]) {
        is_sole &= fixed_[i] != Fixed::kIn && (fixed_[i] == Fixed::kOut || open < 0);
        if (fixed_[i] == Fixed::kOpen) open = i;
      }
      if (open < 0 || !is_sole) continue;
      fixed_[open] = Fixed::kIn;
      is_new = true;
    }
    return is_new;
  }

  // What does not fit beside items that are in is out.
  bool drop_what_does_not_fit() {
    Table<Bytes> inside(problem_.capacity.size(),
                        std::vector<Bytes>(static_cast<std::size_t>(items_.moments), 0));
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] != Fixed::kIn) continue;
      for (Index t = items_.start[i]; t < items_.end[i]; ++t) {
        inside[items_.memory[i]][t] += items_.bytes[i];
      }
    }
    bool is_new = false;
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] != Fixed::kOpen) continue;
      const std::vector<Bytes>& there = inside[items_.memory[i]];
      const Bytes most =
          *std::max_element(there.begin() + items_.start[i], there.begin() + items_.end[i]);
      if (items_.bytes[i] <= items_.capacity[items_.memory[i]] - most) continue;
      fixed_[i] = Fixed::kOut;
      is_new = true;
    }
    return is_new;
  }

  // Items that fit, in some orders: as far as the relaxation takes them, by worth, and by worth for
  // each moment, and each byte and moment.
  void take_greedily(int ways) {
    const auto key = [&](Index i, int way) {
      const double worth = static_cast<double>(items_.worth[i]);
      const double bytes = static_cast<double>(std::max<Bytes>(1, items_.bytes[i]));
      const double length = static_cast<double>(items_.end[i] - items_.start[i]);
      switch (way) {
        case 0:
          return static_cast<double>(relaxed_.taken[i]) / bytes * 1e18 + worth;
        case 1:
          return worth;
        case 2:
          return worth / length;
        default:
          return worth / length / bytes;
      }
    };
    for (int way = 0; way < ways; ++way) {
      std::vector<double> keys;
      for (Index i = 0; i < items_.size(); ++i) keys.push_back(key(i, way));
      fill_by(keys);
    }
  }

  void take_by_dives() {
    for (std::uint64_t seed = 0; seed < kDives && !is_closed(); ++seed) {
      const std::int64_t before = best_;
      dive(seed);
      if (best_ > before) find_root(kRoundsAtFirst);
      if (work_of_dives_ > kWorkOfDives) break;
    }
  }

  // Decides what the relaxation takes most of, as far as it fits, and relaxes the rest, until all
  // is decided.
  void dive(std::uint64_t seed) {
    const std::vector<Fixed> fixed = fixed_;
    const Relaxed relaxed = relaxed_;
    relax_noisy(kStepsOfNoise, seed);
    for (int round = 0; round < kRoundsOfDive && !is_closed(); ++round) {
      if (work_of_dives_ > kWorkOfDives) break;
      if (!decide_most()) break;
      decide_what_follows();
      if (has_conflict()) break;
      relax_noisy(kStepsOfDive, seed);
      take_greedily(1);
      if (relaxed_.worth <= static_cast<double>(scaled(best_))) break;
    }
    fixed_ = fixed;
    relaxed_ = relaxed;
  }

  void relax_noisy(std::size_t steps, std::uint64_t seed) {
    const double noise = kNoise * static_cast<double>(1 << 2 * (seed % 4));
    relaxed_ = relax_units(items_, fixed_, reach_, relaxed_, steps, noise, seed, counter_);
    work_of_dives_ += relaxed_.work;
  }

  // False if all is decided.
  bool decide_most() {
    std::vector<Index> open;
    Table<Bytes> room = list_room();
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] == Fixed::kIn) put(i, room);
      if (fixed_[i] == Fixed::kOpen) open.push_back(i);
    }
    std::stable_sort(open.begin(), open.end(),
                     [&](Index a, Index b) { return share_of(a) > share_of(b); });
    std::size_t more = std::max<std::size_t>(1, open.size() / kFew);
    for (const Index i : open) {
      if (share_of(i) < kWhole) {
        if (more == 0 || (share_of(i) < kMuch && i != open[0])) break;
        --more;
      }
      const std::vector<Index>& unit = items_.of_unit[items_.unit[i]];
      const bool is_free = std::none_of(unit.begin(), unit.end(), [&](Index other) {
        return fixed_[other] == Fixed::kIn && items_.meet(i, other);
      });
      fixed_[i] = is_free && fits(i, room) ? Fixed::kIn : Fixed::kOut;
      if (fixed_[i] == Fixed::kIn) put(i, room);
    }
    return !open.empty();
  }

  // The bytes of each memory at each moment, before items take some of them.
  Table<Bytes> list_room() const {
    Table<Bytes> room;
    for (const Bytes capacity : items_.capacity) {
      room.emplace_back(static_cast<std::size_t>(items_.moments), capacity);
    }
    return room;
  }
  bool fits(Index i, const Table<Bytes>& room) const {
    const std::vector<Bytes>& there = room[items_.memory[i]];
    return *std::min_element(there.begin() + items_.start[i], there.begin() + items_.end[i]) >=
           items_.bytes[i];
  }
  void put(Index i, Table<Bytes>& room) const {
    std::vector<Bytes>& there = room[items_.memory[i]];
    for (Index t = items_.start[i]; t < items_.end[i]; ++t) there[t] -= items_.bytes[i];
  }

  double share_of(Index i) const {
    return (static_cast<double>(relaxed_.taken[i]) + 1) /
           (static_cast<double>(items_.bytes[i]) + 1);
  }

  // Items by what the prices leave of their worth.
  void take_by_profit() { fill_by(prices_.profit); }

  template <typename Key>
  void fill_by(const std::vector<Key>& keys) {
    std::vector<Index> order(items_.bytes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return keys[a] > keys[b]; });
    fill(order);
  }

  // Items in an order, of units that must have one first.
  void fill(const std::vector<Index>& order) {
    Table<Bytes> room = list_room();
    std::vector<std::uint8_t> chosen(items_.bytes.size(), 0);
    std::vector<std::uint8_t> has_item(items_.must.size(), 0);
    const auto take_in = [&](Index i) {
      if (!fits(i, room) || is_excluded(chosen, i)) return;
      put(i, room);
      chosen[i] = 1;
      has_item[items_.unit[i]] = 1;
    };
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] == Fixed::kIn) take_in(i);
    }
    for (const bool is_needed : {true, false}) {
      for (const Index i : order) {
        if (fixed_[i] != Fixed::kOpen || chosen[i] != 0) continue;
        if (!is_needed || items_.must[items_.unit[i]] != 0) take_in(i);
      }
    }
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] == Fixed::kIn && chosen[i] == 0) return;
    }
    for (Index unit = 0; unit < items_.units(); ++unit) {
      if (items_.must[unit] != 0 && has_item[unit] == 0) return;
    }
    take(chosen);
  }

  // Whether chosen items exclude one more: of its unit, or with which a refused set would be whole.
  bool is_excluded(const std::vector<std::uint8_t>& chosen, Index i) const {
    for (const Index other : items_.of_unit[items_.unit[i]]) {
      if (chosen[other] != 0 && items_.meet(other, i)) return true;
    }
    for (const std::vector<std::int32_t>& set : problem_.refused) {
      bool has_item = false;
      bool has_others = true;
      for (const Index each : set) {
        has_item |= each == i;
        has_others &= each == i || chosen[each] != 0;
      }
      if (has_item && has_others) return true;
    }
    return false;
  }

  // The bound of the prices, and what it decides about items in any choice that is better.
  void find_root(std::size_t rounds) {
    for (int round = 0;; ++round) {
      const Units units(items_, fixed_);
      take_prices(
          find_prices(items_, fixed_, units, reach_, relaxed_, scaled(best_), rounds, counter_),
          units);
      if (result_.times.empty()) keep_prices();
      set_bound(prices_.bound);
      if (round == kRoundsOfFixing || is_closed() || !fix_by_profit(units)) return;
      if (!propagate()) {  // no better choice has what the prices decide
        set_bound(scaled(best_));
        return;
      }
      find_relaxed();
    }
  }

  // The better of these prices and those before.
  void take_prices(Prices found, const Units& units) {
    if (!prices_.profit.empty()) {
      prices_.bound = bound_of(prices_, items_, fixed_, units);
      if (prices_.bound <= found.bound) return;
    }
    prices_ = std::move(found);
  }

  void find_relaxed() {
    if (!has_units_ || !has_rivals(items_, fixed_)) {
      relaxed_ = relax(items_, fixed_, reach_, counter_);
      return;
    }
    const std::size_t steps = relaxed_.share.empty() ? kStepsAtFirst : kStepsAgain;
    relaxed_ = relax_units(items_, fixed_, reach_, relaxed_, steps, 0, 0, counter_);
  }

  std::int64_t scaled(std::int64_t worth) const {
    return worth * (std::int64_t{1} << items_.shift);
  }
  void set_bound(std::int64_t scaled) {
    bound_ = std::min(bound_, std::max(best_, rounded(items_, scaled)));
    if (bound_ < 0) result_.status = Status::kInfeasible;
  }

  bool fix_by_profit(const Units& units) {
    bool is_new = false;
    std::vector<Index> best;
    for (Index unit = 0; unit < items_.units(); ++unit) {
      const std::int64_t most = units.evaluate(unit, prices_.profit, best);
      for (const Index i : items_.of_unit[unit]) {
        if (fixed_[i] != Fixed::kOpen) continue;
        const std::int64_t with = prices_.bound - most + units.evaluate_with(i, prices_.profit);
        const std::int64_t without =
            prices_.bound - most + units.evaluate_without(i, prices_.profit);
        if (rounded(items_, with) <= best_) {
          fixed_[i] = Fixed::kOut;
        } else if (rounded(items_, without) <= best_) {
          fixed_[i] = Fixed::kIn;
        } else {
          continue;
        }
        is_new = true;
      }
    }
    return is_new;
  }

  void keep_prices() {
    result_.times = items_.times;
    result_.prices = prices_.byte;
    result_.shift = items_.shift;
  }

  void sweep_all(std::size_t width) {
    const Swept found = sweep(problem_, items_, fixed_, reach_, prices_, best_, width, counter_);
    if (found.is_better) take(found.chosen);
    if (!found.is_whole) return;
    set_bound(std::max(found.promised, scaled(best_)));
    // Without a choice so far, nothing was dropped for being worth less than it.
    if (!has_choice() && found.promised < 0) result_.status = Status::kInfeasible;
  }

  // Choices that differ from the best one in a part of the items only, within about as many nodes.
  void search_windows(std::size_t round, std::int64_t nodes) {
    if (!has_choice()) return;
    const std::int64_t last = counter_.used() + std::max(nodes, kNodesOfWindows);
    for (int idle = 0; idle < kWindows && counter_.used() < last && !is_closed(); ++idle) {
      const Swept found = sweep(problem_, items_, draw_window(kMore << round), reach_, prices_,
                                best_, kWidthOfWindow << round, counter_);
      if (!found.is_better) continue;
      take(found.chosen);
      idle = 0;
    }
  }

  // Units that are live with one of them, or anywhere, are open; the others are as in the best.
  std::vector<Fixed> draw_window(std::size_t more) {
    std::vector<Fixed> fixed(fixed_.size());
    const auto middle = static_cast<Index>(random_.below(fixed_.size()));
    const bool anywhere = random_.below(3) == 0;
    std::vector<Index> near;
    std::vector<std::uint8_t> is_near(items_.of_unit.size(), 0);
    for (Index i = 0; i < items_.size(); ++i) {
      fixed[i] = result_.chosen[i] != 0 ? Fixed::kIn : Fixed::kOut;
      if (fixed_[i] != Fixed::kOpen || is_near[items_.unit[i]] != 0) continue;
      if (!anywhere && !items_.meet(i, middle)) continue;
      is_near[items_.unit[i]] = 1;
      near.push_back(items_.unit[i]);
    }
    // Items of which the prices do not say much come first, by some chance.
    std::vector<std::pair<double, Index>> doubts;
    for (const Index unit : near) {
      std::int64_t least = INT64_MAX;
      for (const Index i : items_.of_unit[unit]) {
        least = std::min(least, std::abs(prices_.profit[i]));
      }
      doubts.emplace_back(static_cast<double>(least) * static_cast<double>(1 + random_.below(8)),
                          unit);
    }
    const std::size_t most = std::min<std::size_t>(doubts.size(), kLeast + random_.index(more));
    std::partial_sort(doubts.begin(), doubts.begin() + static_cast<std::ptrdiff_t>(most),
                      doubts.end());
    for (std::size_t at = 0; at < most; ++at) {
      for (const Index i : items_.of_unit[doubts[at].second]) fixed[i] = fixed_[i];
    }
    return fixed;
  }

  Choice finish() {
    if (has_choice()) {
      result_.worth = best_;
      result_.bound = std::max(best_, bound_);
      result_.status = best_ >= bound_ ? Status::kOptimal : Status::kFeasible;
    } else if (result_.status != Status::kInfeasible) {
      result_.bound = bound_;
    }
    result_.nodes = counter_.used();
    result_.interrupted = stopper_.interrupted();
    return std::move(result_);
  }

  const ChoiceProblem& problem_;
  Items items_;
  Stopper stopper_;
  Counter counter_;
  Random random_{1};
  std::vector<Fixed> fixed_;  // decided for all choices that are better than the best one
  Reach reach_;
  Relaxed relaxed_;
  bool has_units_ = false;  // in the relaxation
  double work_of_dives_ = 0;
  Prices prices_;
  std::int64_t best_ = -1;  // what the best choice is worth
  std::int64_t bound_ = INT64_MAX;
  Choice result_;
};

}  // namespace

}  // namespace choice

std::string check(const ChoiceProblem& problem) {
  const std::size_t items = problem.bytes.size();
  for (const std::size_t length : {problem.start.size(), problem.end.size(), problem.worth.size(),
                                   problem.memory.size(), problem.unit.size()}) {
    if (length != items) return "the columns of the items differ in length";
  }
  if (problem.capacity.size() > choice::kMostMemories) return "there are more than 16 memories";
  for (const Bytes capacity : problem.capacity) {
    if (capacity < 0) return "a capacity must be 0 or more";
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const auto is_below = [](std::int32_t index, std::size_t count) {
    return index >= 0 && static_cast<std::size_t>(index) < count;
  };
  std::int64_t left = kMost;
  std::vector<std::int32_t> first(problem.must.size(), -1);
  for (std::size_t i = 0; i < items; ++i) {
    const std::string name = "item " + std::to_string(i);
    if (problem.start[i] >= problem.end[i]) return name + " ends before it begins";
    if (problem.bytes[i] < 0) return name + " has fewer bytes than 0";
    if (problem.worth[i] < 0) return name + " is worth less than 0";
    if (problem.worth[i] > left) return "the items are worth more than 2^53";
    left -= problem.worth[i];
    if (!is_below(problem.memory[i], problem.capacity.size())) return name + " has no memory";
    if (!is_below(problem.unit[i], problem.must.size())) return name + " has no unit";
    std::int32_t& before = first[problem.unit[i]];
    if (before < 0) before = static_cast<std::int32_t>(i);
    if (problem.must[problem.unit[i]] == 0) continue;
    if (problem.start[i] != problem.start[before] || problem.end[i] != problem.end[before]) {
      return name + " lives at other times than another item of a unit that must have one";
    }
  }
  for (const std::vector<std::int32_t>& set : problem.refused) {
    for (const std::int32_t i : set) {
      if (!is_below(i, items)) return "a refused set names an unknown item";
    }
  }
  return "";
}

Choice choose(const ChoiceProblem& problem, const ChoiceOptions& options) {
  if (const std::string wrong = check(problem); !wrong.empty()) fail(wrong);
  return choice::ChoiceSearch(problem, options).solve();
}

}  // namespace memplan
