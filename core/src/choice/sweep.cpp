#include "choice/sweep.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "util/random.h"

namespace memplan::choice {

namespace {

constexpr std::size_t kItemWords = 4;  // so many times 64 open items can be live at once
constexpr std::size_t kSetWords = 2;   // the same for sets
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
  std::array<Bytes, kMemories> room{};
  Index back = kNone;  // the last choice that led here
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
        const Table<Bytes>& reachable, const Prices& prices, std::int64_t best, std::size_t width,
        order::Counter& counter)
      : problem_(problem),
        items_(items),
        fixed_(fixed),
        reachable_(reachable),
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
    std::copy(items_.capacity.begin(), items_.capacity.end(), first.room.begin());
    std::vector<Label> labels;
    if (!units_.is_impossible() && !is_worse(first.promise)) labels.push_back(first);
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
      if (fixed_[i] == Fixed::kOut) continue;
      starts_[items_.start[i]].push_back(i);
      if (fixed_[i] == Fixed::kOpen) ends_[items_.end[i]].push_back(i);
    }
    // Those that are in come first, since they decide what room there is.
    for (auto& each : starts_) {
      std::stable_partition(each.begin(), each.end(),
                            [&](Index i) { return fixed_[i] == Fixed::kIn; });
    }
    bit_of_item_.assign(items_.bytes.size(), kNone);
    std::vector<std::vector<Index>> open_starts(moments);
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] == Fixed::kOpen) open_starts[items_.start[i]].push_back(i);
    }
    if (!number(open_starts, ends_, 0, 64 * kItemWords, bit_of_item_)) return false;
    in_ends_.assign(moments, {});
    for (Index i = 0; i < items_.size(); ++i) {
      if (fixed_[i] == Fixed::kIn) in_ends_[items_.end[i]].push_back(i);
    }
    find_rivals();
    decided_ = units_.decide(prices_.profit);
    return prepare_sets(moments);
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
        first = std::min(first, items_.start[i]);
        sets_of_[i].push_back(static_cast<Index>(s));
        Index& last = last_of_[s];
        if (last == kNone || place(last) < place(i)) last = i;
      }
      set_starts_[first].push_back(static_cast<Index>(s));
      set_ends_[items_.end[last_of_[s]]].push_back(static_cast<Index>(s));
    }
    return number(set_starts_, set_ends_, 64 * kItemWords, 64 * kSetWords, bit_of_set_);
  }

  // The order in which items are decided.
  std::pair<Index, std::pair<bool, Index>> place(Index i) const {
    return {items_.start[i], {fixed_[i] != Fixed::kIn, i}};
  }

  void end_items(std::vector<Label>& labels, Index t) {
    const bool is_change = !ends_[t].empty() || !set_ends_[t].empty();
    for (Label& label : labels) {
      for (const Index i : in_ends_[t]) label.room[items_.memory[i]] += items_.bytes[i];
      for (const Index i : ends_[t]) {
        if (!test(label.key, bit_of_item_[i])) continue;
        clear(label.key, bit_of_item_[i]);
        label.room[items_.memory[i]] += items_.bytes[i];
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
      if (fixed_[i] == Fixed::kIn) continue;
      Label without = label;
      if (is_free) without.promise += decided_.skipped[i];
      for (const Index s : sets_of_[i]) clear(without.key, bit_of_set_[s]);
      if (!is_worse(without.promise)) next_.push_back(without);
    }
    labels.swap(next_);
  }

  void add_with(const Label& label, Index i) {
    if (label.room[items_.memory[i]] < items_.bytes[i] || is_refused(label, i)) return;
    Label with = label;
    with.promise += decided_.taken[i];
    if (is_worse(with.promise)) return;
    with.room[items_.memory[i]] -= items_.bytes[i];
    with.worth += items_.worth[i];
    if (fixed_[i] == Fixed::kOpen) {
      set(with.key, bit_of_item_[i]);
      choices_.push_back({label.back, i});
      with.back = static_cast<Index>(choices_.size()) - 1;
    }
    next_.push_back(with);
  }

  // Whether this item would be the last one of a set of which all others have been chosen.
  bool is_refused(const Label& label, Index i) const {
    return std::any_of(sets_of_[i].begin(), sets_of_[i].end(), [&](Index s) {
      return last_of_[s] == i && test(label.key, bit_of_set_[s]);
    });
  }

  // Bytes that have a price and are not used at this moment are not used later either.
  void leave_moment(std::vector<Label>& labels, Index t) {
    std::size_t kept = 0;
    for (Label& label : labels) {
      for (Index memory = 0; memory < items_.memories(); ++memory) {
        const Bytes used = items_.capacity[memory] - label.room[memory];
        // What there is has a price below 2^60, so that the product does not overflow.
        label.promise -= prices_.byte[memory][t] * std::max<Bytes>(0, reachable_[memory][t] - used);
      }
      if (!is_worse(label.promise)) labels[kept++] = label;
    }
    labels.resize(kept);
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
  const Table<Bytes>& reachable_;
  const Prices& prices_;
  Units units_;
  std::int64_t best_;
  std::size_t width_;
  order::Counter& counter_;
  std::vector<std::vector<Index>> starts_;
  std::vector<std::vector<Index>> ends_;     // of open items
  std::vector<std::vector<Index>> in_ends_;  // of items that are in
  std::vector<std::vector<Index>> rivals_;
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
            const Table<Bytes>& reachable, const Prices& prices, std::int64_t best,
            std::size_t width, order::Counter& counter) {
  const auto run = [&](auto memories) {
    return Sweep<decltype(memories)::value>(problem, items, fixed, reachable, prices, best, width,
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
