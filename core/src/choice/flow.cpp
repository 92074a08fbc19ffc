#include "choice/flow.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace memplan::choice {

namespace {

using Cost = std::int64_t;

constexpr Cost kFar = std::numeric_limits<Cost>::max() / 4;

// A flow of least cost, by shortest paths; on the arcs of shortest paths as much as possible flows
// before the next search. All arcs lead forward in time, so that the first paths need no search.
class FlowInTime {
 public:
  explicit FlowInTime(Index nodes) : out_(static_cast<std::size_t>(nodes)) {}

  Index add(Index from, Index to, Bytes bytes, Cost cost) {
    const auto arc = static_cast<Index>(arcs_.size());
    out_[from].push_back(arc);
    out_[to].push_back(arc + 1);
    arcs_.push_back({to, bytes, cost});
    arcs_.push_back({from, 0, -cost});
    return arc;
  }
  Bytes flow(Index arc) const { return arcs_[arc + 1].left; }
  const std::vector<Cost>& potential() const { return potential_; }

  void send(Bytes amount, Counter& counter) {
    const std::size_t nodes = out_.size();
    potential_.assign(nodes, kFar);
    potential_[0] = 0;
    for (std::size_t u = 0; u < nodes; ++u) {
      for (const Index arc : out_[u]) {
        if (arcs_[arc].left == 0) continue;
        Cost& there = potential_[arcs_[arc].to];
        there = std::min(there, potential_[u] + arcs_[arc].cost);
      }
    }
    on_path_.assign(nodes, 0);
    while (amount > 0 && !counter.take()) {
      next_.assign(nodes, 0);
      for (Bytes sent = 1; amount > 0 && sent > 0; amount -= sent) sent = push(amount);
      if (amount > 0) find_distances();
    }
  }

 private:
  struct Arc {
    Index to;
    Bytes left;
    Cost cost;
  };

  // Sends along one path of arcs that cost nothing beyond the potentials. Depths can be as large
  // as the number of moments, so that the path is a stack of arcs.
  Bytes push(Bytes most) {
    const auto last = static_cast<Index>(out_.size()) - 1;
    std::vector<Index> path;
    Index at = 0;
    on_path_[0] = 1;
    while (at != last) {
      bool is_found = false;
      for (std::size_t& next = next_[at]; next < out_[at].size(); ++next) {
        const Arc& arc = arcs_[out_[at][next]];
        if (arc.left == 0 || on_path_[arc.to] != 0) continue;
        if (arc.cost + potential_[at] - potential_[arc.to] != 0) continue;
        is_found = true;
        break;
      }
      if (is_found) {
        path.push_back(out_[at][next_[at]]);
        at = arcs_[path.back()].to;
        on_path_[at] = 1;
        continue;
      }
      on_path_[at] = 0;
      if (path.empty()) return 0;
      at = arcs_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
    }
    Bytes sent = most;
    for (const Index arc : path) sent = std::min(sent, arcs_[arc].left);
    for (const Index arc : path) {
      arcs_[arc].left -= sent;
      arcs_[arc ^ 1].left += sent;
      on_path_[arcs_[arc].to] = 0;
    }
    on_path_[0] = 0;
    return sent;
  }

  void find_distances() {
    std::vector<Cost> distance(out_.size(), kFar);
    using Entry = std::pair<Cost, Index>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    distance[0] = 0;
    queue.push({0, 0});
    while (!queue.empty()) {
      const auto [far, u] = queue.top();
      queue.pop();
      if (far > distance[u]) continue;
      for (const Index number : out_[u]) {
        const Arc& arc = arcs_[number];
        if (arc.left == 0) continue;
        const Cost there = far + arc.cost + potential_[u] - potential_[arc.to];
        if (there >= distance[arc.to]) continue;
        distance[arc.to] = there;
        queue.push({there, arc.to});
      }
    }
    for (std::size_t u = 0; u < out_.size(); ++u) potential_[u] += distance[u];
  }

  std::vector<std::vector<Index>> out_;  // by node: arcs; arc ^ 1 is its reverse
  std::vector<Arc> arcs_;
  std::vector<Cost> potential_;
  std::vector<std::size_t> next_;
  std::vector<std::uint8_t> on_path_;
};

// The relaxation of one memory: its prices by moment, and what it takes of its items.
std::vector<Cost> relax_memory(const Items& items, const std::vector<Fixed>& fixed, Index memory,
                               std::vector<Bytes> room, std::vector<Bytes>& taken,
                               Counter& counter) {
  std::vector<Cost> price(static_cast<std::size_t>(items.moments), 0);
  Cost dearest = 0;
  const auto worth_of_byte = [&](Index i) {
    return (items.worth[i] + items.bytes[i] - 1) / items.bytes[i];
  };
  std::vector<Index> open;
  for (Index i = 0; i < items.size(); ++i) {
    if (items.memory[i] != memory || items.bytes[i] == 0) continue;
    if (fixed[i] == Fixed::kIn) {
      for (Index t = items.start[i]; t < items.end[i]; ++t) room[t] -= items.bytes[i];
    }
    if (fixed[i] != Fixed::kOpen) continue;
    open.push_back(i);
    dearest = std::max(dearest, worth_of_byte(i));
  }
  // The room is what items that are in leave. Where it is less than at its largest, the rest of
  // the flow can only be idle; it would rather be idle there than anything else.
  const Bytes most = room.empty() ? 0 : *std::max_element(room.begin(), room.end());
  if (most <= 0 || open.empty()) return price;
  if (dearest > kFar / 4 / (items.moments + 2)) return price;  // sums of prices would overflow
  FlowInTime flow(items.moments + 1);
  for (Index t = 0; t < items.moments; ++t) {
    flow.add(t, t + 1, most, 0);
    if (room[t] < most) flow.add(t, t + 1, most - room[t], -dearest - 1);
  }
  std::vector<Index> arcs;
  for (const Index i : open) {
    arcs.push_back(flow.add(items.start[i], items.end[i], items.bytes[i], -worth_of_byte(i)));
  }
  flow.send(most, counter);
  for (std::size_t at = 0; at < open.size(); ++at) taken[open[at]] = flow.flow(arcs[at]);
  std::vector<Bytes> wanted(price.size() + 1, 0);  // by open items
  for (const Index i : open) {
    wanted[items.start[i]] += items.bytes[i];
    wanted[items.end[i]] -= items.bytes[i];
  }
  for (Index t = 0; t < items.moments; ++t) {
    if (t > 0) wanted[t] += wanted[t - 1];
    // Where there is room for all, a byte more is worth nothing.
    if (wanted[t] <= room[t]) continue;
    price[t] = std::max<Cost>(0, flow.potential()[t] - flow.potential()[t + 1]);
  }
  return price;
}

}  // namespace

Relaxed relax(const Items& items, const std::vector<Fixed>& fixed, const Reach& reach,
              Counter& counter) {
  Relaxed found;
  found.taken.assign(items.bytes.size(), 0);
  for (Index memory = 0; memory < items.memories(); ++memory) {
    found.price.push_back(
        relax_memory(items, fixed, memory, reach.most[memory], found.taken, counter));
  }
  return found;
}

}  // namespace memplan::choice
