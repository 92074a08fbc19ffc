#include "choice/items.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "util/sums.h"

namespace memplan::choice {

namespace {

constexpr int kBits = 58;  // of the sum of all scaled worths: prices of prices.cpp go to 2^60
// At one moment, sums are looked for among so many, of so many items; beyond that the capacity
// stands for the greatest sum. A bit for each sum and a pass for each item take 2.5 million words.
constexpr std::int64_t kMostSums = 400000;
constexpr std::size_t kMostOpen = 400;

// The greatest sums of some of these sizes up to a limit.
class GreatestSums {
 public:
  GreatestSums(const std::vector<Bytes>& sizes, Bytes limit) {
    for (const Bytes size : sizes) total_ += size;
    if (total_ <= limit) limit = total_;
    for (const Bytes size : sizes) unit_ = size <= limit ? std::gcd(unit_, size) : unit_;
    if (unit_ == 0 || limit / unit_ > kMostSums || sizes.size() > kMostOpen) return;
    reached_.emplace(static_cast<std::size_t>(limit / unit_));
    reached_->insert(0);
    for (const Bytes size : sizes) {
      if (size <= limit) reached_->add_shifted(static_cast<std::size_t>(size / unit_));
    }
  }

  Bytes greatest(Bytes limit) const {
    limit = std::min(limit, total_);
    if (unit_ == 0) return 0;
    std::int64_t sum = limit / unit_;
    if (!reached_) return limit == total_ ? total_ : sum * unit_;
    while (!reached_->has(static_cast<std::size_t>(sum))) --sum;
    return sum * unit_;
  }

 private:
  Bytes total_ = 0;
  Bytes unit_ = 0;
  std::optional<Sums> reached_;  // none where there would be too many
};

// What is live in one memory at a moment: items that are in, and open ones below and above half of
// its capacity.
class Live {
 public:
  Live(const Items& items, const std::vector<Fixed>& fixed, Index memory)
      : items_(items), fixed_(fixed), capacity_(items.capacity[memory]) {}

  bool is_large(Index i) const {
    return fixed_[i] == Fixed::kOpen && items_.bytes[i] > capacity_ / 2;
  }
  void begin(Index i) {
    if (fixed_[i] == Fixed::kIn) {
      inside_ += items_.bytes[i];
    } else if (is_large(i)) {
      large_.push_back(i);
    } else {
      small_.push_back(items_.bytes[i]);
    }
  }
  void end(Index i) {
    if (fixed_[i] == Fixed::kIn) {
      inside_ -= items_.bytes[i];
    } else if (is_large(i)) {
      large_.erase(std::find(large_.begin(), large_.end(), i));
    } else {
      small_.erase(std::find(small_.begin(), small_.end(), items_.bytes[i]));
    }
  }

  // Writes what can be held at a moment; false if what is in does not fit.
  bool write(Index memory, Index t, Reach& reach) {
    const Bytes room = capacity_ - inside_;
    if (room < 0) return false;
    const GreatestSums sums(small_, room);
    const Bytes small = inside_ + sums.greatest(room);
    Bytes most = small;
    for (const Index i : large_) {
      const Bytes left = room - items_.bytes[i];
      const Bytes beside = left < 0 ? std::min(inside_, small) : inside_ + sums.greatest(left);
      reach.beside[i].push_back(beside);
      if (left >= 0) most = std::max(most, beside + items_.bytes[i]);
    }
    reach.small[memory][t] = small;
    reach.most[memory][t] = most;
    return true;
  }

 private:
  const Items& items_;
  const std::vector<Fixed>& fixed_;
  Bytes capacity_;
  Bytes inside_ = 0;
  std::vector<Bytes> small_;
  std::vector<Index> large_;
};

}  // namespace

Items make_items(const ChoiceProblem& problem) {
  Items items;
  items.bytes = problem.bytes;
  items.memory = problem.memory;
  items.unit = problem.unit;
  items.must = problem.must;
  items.capacity = problem.capacity;
  items.times = problem.start;
  items.times.insert(items.times.end(), problem.end.begin(), problem.end.end());
  std::sort(items.times.begin(), items.times.end());
  items.times.erase(std::unique(items.times.begin(), items.times.end()), items.times.end());
  items.moments = std::max<Index>(0, static_cast<Index>(items.times.size()) - 1);
  const auto place = [&](Time time) {
    return static_cast<Index>(std::lower_bound(items.times.begin(), items.times.end(), time) -
                              items.times.begin());
  };
  std::int64_t total = 1;
  items.grain = 0;
  items.of_unit.resize(problem.must.size());
  for (Index i = 0; i < items.size(); ++i) {
    items.start.push_back(place(problem.start[i]));
    items.end.push_back(place(problem.end[i]));
    total += problem.worth[i];
    items.grain = std::gcd(items.grain, problem.worth[i]);
    items.of_unit[items.unit[i]].push_back(i);
  }
  for (std::vector<Index>& each : items.of_unit) {
    std::stable_sort(each.begin(), each.end(),
                     [&](Index a, Index b) { return items.start[a] < items.start[b]; });
  }
  items.grain = std::max<std::int64_t>(1, items.grain);
  while (items.shift < kBits && total >> (kBits - items.shift) == 0) ++items.shift;
  if (items.shift > 0) --items.shift;
  for (const std::int64_t worth : problem.worth) items.worth.push_back(worth << items.shift);
  return items;
}

bool find_reach(const Items& items, const std::vector<Fixed>& fixed, Reach& reach) {
  const auto moments = static_cast<std::size_t>(items.moments);
  reach.most.assign(items.capacity.size(), std::vector<Bytes>(moments, 0));
  reach.small = reach.most;
  reach.beside.assign(items.bytes.size(), {});
  for (Index memory = 0; memory < items.memories(); ++memory) {
    std::vector<std::vector<Index>> starts(moments + 1);
    std::vector<std::vector<Index>> ends(moments + 1);
    for (Index i = 0; i < items.size(); ++i) {
      if (items.memory[i] != memory || fixed[i] == Fixed::kOut) continue;
      starts[items.start[i]].push_back(i);
      ends[items.end[i]].push_back(i);
    }
    Live live(items, fixed, memory);
    for (Index t = 0; t < items.moments; ++t) {
      for (const Index i : ends[t]) live.end(i);
      for (const Index i : starts[t]) live.begin(i);
      if (!live.write(memory, t, reach)) return false;
    }
  }
  return true;
}

}  // namespace memplan::choice
