#include "choice/sweep.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "util/random.h"

namespace memplan::choice {

namespace {

// The words of a label: so many times 64 open items, and refused sets, can be live at once. A sweep
// of more is refused, and windows of fewer items are left.
constexpr std::size_t kItemWords = 8;
constexpr std::size_t kSetWords = 2;
constexpr Index kNone = -1;

using Key = std::array<std::uint64_t, kItemWords + kSetWords>;

struct HashOfKey {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : key) hash = mix(hash ^ word);
    return static_cast<std::size_t>(hash);
  }
};

template <std::size_t kMemories>
struct LabelOf {
  Key key{};
  std::int64_t worth = 0;  // scaled
  std::int64_t promise = 0;
  std::array<Bytes, kMemories> held{};
  std::array<std::int32_t, kMemories * kMostCounts> counts{};  // that are used, by rule
  Index back = kNone;                                          // the last choice that led here
};

bool test(const Key& key, Index bit) {
  return (key[static_cast<std::size_t>(bit) / 64] >> (bit % 64) & 1) != 0;
}
void set(Key& key, Index bit) { key[static_cast<std::size_t>(bit) / 64] |= 1ULL << (bit % 64); }
void clear(Key& key, Index bit) {
  key[static_cast<std::size_t>(bit) / 64] &= ~(1ULL << (bit % 64));
}

// Gives numbers to things that are live at the same time, none of which two of them have; false if
// they would need more than `most`.
bool number(const std::vector<std::vector<Index>>& starts,
            const std::vector<std::vector<Index>>& ends, Index first, Index most,
            std::vector<Index>& bit_of) {
  std::vector<Index> left;
  Index used = 0;
  for (std::size_t t = 0; t < starts.size(); ++t) {
    for (const Index each : ends[t]) left.push_back(bit_of[each]);
    for (const Index each : starts[t]) {
      if (left.empty()) left.push_back(first + used++);
      if (used > most) return false;
      bit_of[each] = left.back();
      left.pop_back();
    }
  }
  return true;
}

template <std::size_t kMemories>
class Sweep {
  using Label = LabelOf<kMemories>;

 public:
  Sweep(const ChoiceProblem& problem, const Items& items, const std::vector<Fixed>& fixed,
        const Reach& reach, const Prices& prices, std::int64_t best, std::size_t width,
        Counter& counter)
      : problem_(problem),
        items_(items),
        fixed_(fixed),
        reach_(reach),
        prices_(prices),
        units_(items, fixed),
        best_(best),
        width_(width),
        counter_(counter) {}

  Swept run() {
    Swept found;
    if (!prepare()) return found;
    Label first;
    first.promise = bound_of(prices_, items_, fixed_, units_);
    std::vector<Label> labels;
    if (!units_.is_impossible()) labels.push_back(first);
    for (Index t = 0; t < items_.moments && !labels.empty(); ++t) {
      end_items(labels, t);
      for (const Index i : starts_[t]) {
        if (counter_.is_spent()) return found;
        decide(labels, i);
        if (labels.size() > width_) drop(labels);
      }
      leave_moment(labels, t);
    }
    found.is_whole = true;
    found.promised = dropped_;
    for (const Label& label : labels) take(label, found);
    return found;
  }

 private:
  bool is_worse(std::int64_t promise) const { return rounded(items_, promise) <= best_; }

  bool prepare() {
    const auto moments = static_cast<std::size_t>(items_.moments) + 1;
    starts_.assign(moments, {});
    ends_.assign(moments, {});
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] != Fixed::kOpen) continue;
      starts_[items_.start[i]].push_back(i);
      ends_[items_.end[i]].push_back(i);
    }
    bit_of_item_.assign(items_.bytes.size(), kNone);
    if (!number(starts_, ends_, 0, 64 * kItemWords, bit_of_item_)) return false;
    find_inside();
    find_rivals();
    find_alike();
    decided_ = units_.decide(prices_.profit);
    return prepare_sets(moments);
  }

  // What items that are in hold, and what may be held beside those that are large.
  void find_inside() {
    const auto moments = static_cast<std::size_t>(items_.moments) + 1;
    inside_.assign(items_.capacity.size(), std::vector<Bytes>(moments, 0));
    counts_inside_.assign(prices_.rules.size(), std::vector<std::int32_t>(moments, 0));
    allowed_ = reach_.small;
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] != Fixed::kIn) continue;
      inside_[items_.memory[i]][items_.start[i]] += items_.bytes[i];
      inside_[items_.memory[i]][items_.end[i]] -= items_.bytes[i];
      for (std::size_t r = 0; r < prices_.rules.size(); ++r) {
        counts_inside_[r][items_.start[i]] += prices_.rules[r].counts[i];
        counts_inside_[r][items_.end[i]] -= prices_.rules[r].counts[i];
      }
      if (reach_.beside[i].empty()) continue;
      for (Index t = items_.start[i]; t < items_.end[i]; ++t) {
        allowed_[items_.memory[i]][t] = allow(i, t);
      }
    }
    for (auto& each : inside_) std::partial_sum(each.begin(), each.end(), each.begin());
    for (auto& each : counts_inside_) std::partial_sum(each.begin(), each.end(), each.begin());
    large_.assign(moments, {});
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] != Fixed::kOpen || reach_.beside[i].empty()) continue;
      for (Index t = items_.start[i]; t < items_.end[i]; ++t) large_[t].push_back(i);
    }
  }

  // What a memory holds at most if a large item is there.
  Bytes allow(Index large, Index t) const {
    return reach_.beside[large][t - items_.start[large]] + items_.bytes[large];
  }

  // For each open item, those of its unit that may be live when it is decided.
  void find_rivals() {
    rivals_.assign(items_.bytes.size(), {});
    for (const std::vector<Index>& unit : items_.of_unit) {
      for (std::size_t at = 1; at < unit.size(); ++at) {
        if (fixed_[unit[at]] != Fixed::kOpen) continue;
        for (std::size_t before = 0; before < at; ++before) {
          const Index other = unit[before];
          if (fixed_[other] != Fixed::kOpen || !items_.meet(other, unit[at])) continue;
          rivals_[unit[at]].push_back(other);
        }
      }
    }
  }

  // For each open item without others in its unit: those like it that are decided before it.
  void find_alike() {
    alike_.assign(items_.bytes.size(), {});
    for (const std::vector<Index>& ending : ends_) {
      for (const Index i : ending) {
        if (items_.of_unit[items_.unit[i]].size() > 1) continue;
        for (const Index other : ending) {
          if (items_.of_unit[items_.unit[other]].size() > 1) continue;
          if (items_.memory[other] != items_.memory[i] || items_.bytes[other] != items_.bytes[i]) {
            continue;
          }
          if (place(other) < place(i)) alike_[i].push_back(other);
        }
        std::sort(alike_[i].begin(), alike_[i].end(),
                  [&](Index a, Index b) { return place(a) < place(b); });
      }
    }
  }

  // A set is live from the start of its first item to the start of its last one.
  bool prepare_sets(std::size_t moments) {
    set_starts_.assign(moments, {});
    set_ends_.assign(moments, {});
    sets_of_.assign(items_.bytes.size(), {});
    bit_of_set_.assign(problem_.refused.size(), kNone);
    last_of_.assign(problem_.refused.size(), kNone);
    for (std::size_t s = 0; s < problem_.refused.size(); ++s) {
      const std::vector<std::int32_t>& each = problem_.refused[s];
      const bool is_broken =
          std::any_of(each.begin(), each.end(), [&](Index i) { return fixed_[i] == Fixed::kOut; });
      if (each.empty() || is_broken) continue;
      Index first = items_.moments;
      for (const Index i : each) {
        if (fixed_[i] != Fixed::kOpen) continue;
        first = std::min(first, items_.start[i]);
        sets_of_[i].push_back(static_cast<Index>(s));
        Index& last = last_of_[s];
        if (last == kNone || place(last) < place(i)) last = i;
      }
      if (last_of_[s] == kNone) return false;  // all of it is in
      set_starts_[first].push_back(static_cast<Index>(s));
      set_ends_[items_.end[last_of_[s]]].push_back(static_cast<Index>(s));
    }
    return number(set_starts_, set_ends_, 64 * kItemWords, 64 * kSetWords, bit_of_set_);
  }

  // The order in which items are decided.
  std::pair<Index, Index> place(Index i) const { return {items_.start[i], i}; }

  void end_items(std::vector<Label>& labels, Index t) {
    const bool is_change = !ends_[t].empty() || !set_ends_[t].empty();
    for (Label& label : labels) {
      for (const Index i : ends_[t]) {
        if (!test(label.key, bit_of_item_[i])) continue;
        clear(label.key, bit_of_item_[i]);
        use(label, i, -1);
      }
      for (const Index s : set_ends_[t]) clear(label.key, bit_of_set_[s]);
      for (const Index s : set_starts_[t]) set(label.key, bit_of_set_[s]);
    }
    if (is_change && labels.size() > 1) merge(labels);
  }

  void merge(std::vector<Label>& labels) {
    std::unordered_map<Key, std::size_t, HashOfKey> place_of;
    place_of.reserve(labels.size() * 2);
    std::size_t kept = 0;
    for (std::size_t l = 0; l < labels.size(); ++l) {
      const auto [at, is_new] = place_of.emplace(labels[l].key, kept);
      if (is_new) {
        labels[kept++] = labels[l];
      } else if (labels[at->second].worth < labels[l].worth) {
        labels[at->second] = labels[l];
      }
    }
    labels.resize(kept);
  }

  void decide(std::vector<Label>& labels, Index i) {
    next_.clear();
    for (const Label& label : labels) {
      counter_.take();
      const bool is_free = std::none_of(rivals_[i].begin(), rivals_[i].end(), [&](Index other) {
        return test(label.key, bit_of_item_[other]);
      });
      if (is_free) add_with(label, i);
      Label without = label;
      if (is_free) without.promise += decided_.skipped[i];
      for (const Index s : sets_of_[i]) clear(without.key, bit_of_set_[s]);
      if (!is_worse(without.promise)) next_.push_back(without);
    }
    labels.swap(next_);
  }

  void add_with(const Label& label, Index i) {
    const Index memory = items_.memory[i];
    const Bytes held = label.held[memory] + inside_[memory][items_.start[i]];
    if (held + items_.bytes[i] > items_.capacity[memory] || is_refused(label, i)) return;
    Label with = label;
    with.promise += decided_.taken[i];
    if (is_worse(with.promise)) return;
    use(with, i, 1);
    with.worth += items_.worth[i];
    set(with.key, find_bit(with.key, i));
    choices_.push_back({label.back, i});
    with.back = static_cast<Index>(choices_.size()) - 1;
    next_.push_back(with);
  }

  // The item takes what it holds of its memory and of the rules, or gives it back.
  void use(Label& label, Index i, std::int32_t sign) const {
    label.held[items_.memory[i]] += sign * items_.bytes[i];
    for (std::size_t r = 0; r < prices_.rules.size(); ++r) {
      label.counts[r] += sign * prices_.rules[r].counts[i];
    }
  }

  // Items that hold the same until the same time are alike, so that only their number counts.
  Index find_bit(const Key& key, Index i) const {
    for (const Index each : alike_[i]) {
      if (!test(key, bit_of_item_[each])) return bit_of_item_[each];
    }
    return bit_of_item_[i];
  }

  // Whether this item would be the last one of a set of which all others have been chosen.
  bool is_refused(const Label& label, Index i) const {
    return std::any_of(sets_of_[i].begin(), sets_of_[i].end(), [&](Index s) {
      return last_of_[s] == i && test(label.key, bit_of_set_[s]);
    });
  }

  // Bytes and counts that have a price and are not used at this moment are not used later either.
  void leave_moment(std::vector<Label>& labels, Index t) {
    std::size_t kept = 0;
    for (Label& label : labels) {
      if (leave(label, t) && !is_worse(label.promise)) labels[kept++] = label;
    }
    labels.resize(kept);
  }

  // False if more is held than there is.
  bool leave(Label& label, Index t) const {
    std::array<Bytes, kMemories> allowed{};
    for (Index memory = 0; memory < items_.memories(); ++memory) {
      allowed[memory] = allowed_[memory][t];
    }
    for (const Index i : large_[t]) {
      if (test(label.key, bit_of_item_[i])) allowed[items_.memory[i]] = allow(i, t);
    }
    for (Index memory = 0; memory < items_.memories(); ++memory) {
      const Bytes held = label.held[memory] + inside_[memory][t];
      if (held > items_.capacity[memory]) return false;
      label.promise -= prices_.byte[memory][t] * std::max<Bytes>(0, allowed[memory] - held);
    }
    for (std::size_t r = 0; r < prices_.rules.size(); ++r) {
      const CountRule& rule = prices_.rules[r];
      label.promise -= rule.price[t] * (rule.most - label.counts[r] - counts_inside_[r][t]);
    }
    return true;
  }

  void drop(std::vector<Label>& labels) {
    const auto middle = labels.begin() + static_cast<std::ptrdiff_t>(width_);
    std::nth_element(labels.begin(), middle, labels.end(),
                     [](const Label& a, const Label& b) { return a.promise > b.promise; });
    for (auto each = middle; each != labels.end(); ++each) {
      dropped_ = std::max(dropped_, each->promise);
    }
    labels.resize(width_);
  }

  void take(const Label& label, Swept& found) const {
    std::vector<std::uint8_t> chosen(items_.bytes.size(), 0);
    for (Index i = 0; i < items_.size(); ++i) chosen[i] = fixed_[i] == Fixed::kIn ? 1 : 0;
    for (Index at = label.back; at != kNone; at = choices_[at].back) chosen[choices_[at].item] = 1;
    const std::int64_t worth = worth_of(problem_, chosen);
    if (worth <= best_ || (found.is_better && worth <= found.worth)) return;
    found.is_better = true;
    found.worth = worth;
    found.chosen = std::move(chosen);
  }

  struct Chosen {
    Index back;
    Index item;
  };

  const ChoiceProblem& problem_;
  const Items& items_;
  const std::vector<Fixed>& fixed_;
  const Reach& reach_;
  const Prices& prices_;
  Units units_;
  std::int64_t best_;
  std::size_t width_;
  Counter& counter_;
  std::vector<std::vector<Index>> starts_;
  std::vector<std::vector<Index>> ends_;   // of open items
  Table<Bytes> inside_;                    // held by items that are in
  Table<std::int32_t> counts_inside_;      // the same by rule and moment
  Table<Bytes> allowed_;                   // what is held at most, without open large items
  std::vector<std::vector<Index>> large_;  // by moment: open large items that are live
  std::vector<std::vector<Index>> rivals_;
  std::vector<std::vector<Index>> alike_;
  Decided decided_;
  std::vector<std::vector<Index>> set_starts_;
  std::vector<std::vector<Index>> set_ends_;
  std::vector<std::vector<Index>> sets_of_;  // by item
  std::vector<Index> last_of_;               // by set: its item that is decided last
  std::vector<Index> bit_of_item_;
  std::vector<Index> bit_of_set_;
  std::vector<Chosen> choices_;
  std::vector<Label> next_;
  std::int64_t dropped_ = -1;  // nothing was
};

}  // namespace

Swept sweep(const ChoiceProblem& problem, const Items& items, const std::vector<Fixed>& fixed,
            const Reach& reach, const Prices& prices, std::int64_t best, std::size_t width,
            Counter& counter) {
  const auto run = [&](auto memories) {
    return Sweep<decltype(memories)::value>(problem, items, fixed, reach, prices, best, width,
                                            counter)
        .run();
  };
  if (items.memories() <= 1) return run(std::integral_constant<std::size_t, 1>());
  if (items.memories() <= 4) return run(std::integral_constant<std::size_t, 4>());
  return run(std::integral_constant<std::size_t, kMostMemories>());
}

std::int64_t worth_of(const ChoiceProblem& problem, const std::vector<std::uint8_t>& chosen) {
  std::int64_t worth = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) worth += chosen[i] != 0 ? problem.worth[i] : 0;
  return worth;
}

std::int64_t rounded(const Items& items, std::int64_t scaled) {
  return scaled < 0 ? -1 : (scaled >> items.shift) / items.grain * items.grain;
}

}  // namespace memplan::choice
