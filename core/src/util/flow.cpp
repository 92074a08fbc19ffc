#include "util/flow.h"

#include <algorithm>

namespace memplan {

void Flow::add(std::int32_t from, std::int32_t to, Bytes capacity) {
  for (const bool turned : {false, true}) {
    to_.push_back(turned ? from : to);
    left_.push_back(turned ? 0 : capacity);
    std::int32_t& first = first_[turned ? to : from];
    next_.push_back(first);
    first = static_cast<std::int32_t>(to_.size()) - 1;
  }
}

// A level is the distance from the source by arcs that have capacity left. Breadth first, until the
// sink is found: a shortest path has no node that is farther away.
bool Flow::find_levels() {
  level_.assign(first_.size(), -1);
  level_[kSource] = 0;
  queue_.assign(1, kSource);
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const std::int32_t node = queue_[head];
    for (std::int32_t arc = first_[node]; arc != kNone; arc = next_[arc]) {
      if (left_[arc] == 0 || level_[to_[arc]] >= 0) continue;
      level_[to_[arc]] = level_[node] + 1;
      if (to_[arc] == kSink) return true;  // no shortest path has a node that is not found yet
      queue_.push_back(to_[arc]);
    }
  }
  return level_[kSink] >= 0;
}

// A blocking flow (Dinic 1970): pushes along shortest paths until each has a full arc, so that the
// next levels put the sink farther away. `path` goes from the source up the levels. At a dead end
// the node is taken out of its level, for good; at the sink the path is filled up, and goes on from
// its first full arc. `at_` only moves forward, so that an arc that failed once is not tried again.
Bytes Flow::push_along_levels() {
  Bytes pushed = 0;
  std::vector<std::int32_t> path;  // arcs from the source
  at_ = first_;
  while (true) {
    const std::int32_t node = path.empty() ? kSource : to_[path.back()];
    if (node == kSink) {
      Bytes amount = left_[path.front()];
      for (const std::int32_t arc : path) amount = std::min(amount, left_[arc]);
      pushed += amount;
      std::size_t full = path.size();
      for (std::size_t i = path.size(); i-- > 0;) {
        left_[path[i]] -= amount;
        left_[path[i] ^ 1] += amount;
        if (left_[path[i]] == 0) full = i;
      }
      path.resize(full);
      continue;
    }
    std::int32_t& arc = at_[node];
    while (arc != kNone && (left_[arc] == 0 || level_[to_[arc]] != level_[node] + 1)) {
      arc = next_[arc];
    }
    if (arc != kNone) {
      path.push_back(arc);
    } else if (path.empty()) {
      return pushed;
    } else {
      level_[node] = -1;  // no path leads on from here
      path.pop_back();
    }
  }
}

Bytes Flow::maximize(Bytes enough) {
  Bytes total = 0;
  while (total <= enough && find_levels()) total += push_along_levels();
  return total;
}

// Walks back from the sink along arcs that have capacity left. What it reaches is the smallest side
// that a minimum cut can have there; is_reached() gives the smallest side of the source.
std::vector<std::uint8_t> Flow::nodes_before_sink() const {
  std::vector<std::uint8_t> is_before(first_.size(), 0);
  is_before[kSink] = 1;
  std::vector<std::int32_t> todo{kSink};
  while (!todo.empty()) {
    const std::int32_t node = todo.back();
    todo.pop_back();
    for (std::int32_t arc = first_[node]; arc != kNone; arc = next_[arc]) {
      const std::int32_t other = to_[arc];
      if (left_[arc ^ 1] == 0 || is_before[other] != 0) continue;
      is_before[other] = 1;
      todo.push_back(other);
    }
  }
  return is_before;
}

}  // namespace memplan
