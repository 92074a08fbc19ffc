#include "choice/items.h"

#include <algorithm>
#include <numeric>

namespace memplan::choice {

namespace {

constexpr int kBits = 58;                   // of the sum of all scaled worths
constexpr std::int64_t kMostSums = 400000;  // which are looked for at one moment
constexpr std::size_t kMostOpen = 400;      // items of which sums are looked for

// The greatest sum of some of these sizes up to a limit, by a set of bits for all sums.
Bytes find_greatest_sum(const std::vector<Bytes>& sizes, Bytes limit) {
  Bytes unit = 0;
  for (const Bytes size : sizes) unit = std::gcd(unit, size);
  if (unit == 0) return 0;
  const std::int64_t most = limit / unit;
  if (most > kMostSums || sizes.size() > kMostOpen) return limit / unit * unit;
  std::vector<std::uint64_t> reached(static_cast<std::size_t>(most / 64 + 1), 0);
  reached[0] = 1;
  for (const Bytes size : sizes) {
    const std::size_t words = static_cast<std::size_t>(size / unit / 64);
    const int bits = static_cast<int>(size / unit % 64);
    for (std::size_t at = reached.size(); at-- > words;) {
      std::uint64_t moved = reached[at - words] << bits;
      if (bits > 0 && at > words) moved |= reached[at - words - 1] >> (64 - bits);
      reached[at] |= moved;
    }
  }
  for (std::int64_t sum = most;; --sum) {
    if ((reached[static_cast<std::size_t>(sum / 64)] >> (sum % 64) & 1) != 0) return sum * unit;
  }
}

std::vector<Bytes> find_reachable_in(const Items& items, const std::vector<Fixed>& fixed,
                                     Index memory) {
  std::vector<Bytes> reachable(static_cast<std::size_t>(items.moments), 0);
  std::vector<std::vector<Index>> starts(static_cast<std::size_t>(items.moments) + 1);
  std::vector<std::vector<Index>> ends(starts.size());
  for (Index i = 0; i < items.size(); ++i) {
    if (items.memory[i] != memory || fixed[i] == Fixed::kOut) continue;
    starts[items.start[i]].push_back(i);
    ends[items.end[i]].push_back(i);
  }
  std::vector<Bytes> open;  // sizes of the open items that are live, ascending
  Bytes inside = 0;
  Bytes sum = 0;
  for (Index t = 0; t < items.moments; ++t) {
    for (const Index i : ends[t]) {
      if (fixed[i] == Fixed::kIn) {
        inside -= items.bytes[i];
        continue;
      }
      open.erase(std::lower_bound(open.begin(), open.end(), items.bytes[i]));
      sum -= items.bytes[i];
    }
    for (const Index i : starts[t]) {
      if (fixed[i] == Fixed::kIn) {
        inside += items.bytes[i];
        continue;
      }
      open.insert(std::upper_bound(open.begin(), open.end(), items.bytes[i]), items.bytes[i]);
      sum += items.bytes[i];
    }
    const Bytes room = items.capacity[memory] - inside;
    if (room < 0) return {};
    if (sum <= room) {
      reachable[t] = inside + sum;
      continue;
    }
    const std::vector<Bytes> fitting(open.begin(),
                                     std::upper_bound(open.begin(), open.end(), room));
    reachable[t] = inside + find_greatest_sum(fitting, room);
  }
  return reachable;
}

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

Table<Bytes> find_reachable(const Items& items, const std::vector<Fixed>& fixed) {
  Table<Bytes> reachable;
  for (Index memory = 0; memory < items.memories(); ++memory) {
    reachable.push_back(find_reachable_in(items, fixed, memory));
    if (reachable.back().empty() && items.moments > 0) return {};
  }
  return reachable;
}

}  // namespace memplan::choice
