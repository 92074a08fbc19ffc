// A maximum flow (Dinic 1970), without recursion.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/types.h"

namespace memplan {

class Flow {
 public:
  static constexpr std::int32_t kSource = 0;
  static constexpr std::int32_t kSink = 1;

  explicit Flow(std::size_t nodes) : first_(nodes, kNone) {}

  void add(std::int32_t from, std::int32_t to, Bytes capacity);
  // Gives the arc that was added at this place more capacity. What flows stays.
  void raise(std::size_t arc, Bytes more) { left_[2 * arc] += more; }
  // Adds to the flow until it is maximal, or more than `enough`; returns what was added. More arcs
  // may be added then.
  Bytes maximize(Bytes enough = kMaxBytes);

  // After maximize(): whether the source reaches a node by what is left.
  bool is_reached(std::int32_t node) const { return level_[node] >= 0; }

  // By node: whether the sink can be reached from it by what is left.
  std::vector<std::uint8_t> nodes_before_sink() const;

  // Calls `visit(from, to, amount)` for each arc with a flow.
  template <typename Visit>
  void for_each_arc(const Visit& visit) const {
    for (std::size_t arc = 0; arc < to_.size(); arc += 2) {
      if (left_[arc + 1] > 0) visit(to_[arc + 1], to_[arc], left_[arc + 1]);
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;

  bool find_levels();
  Bytes push_along_levels();

  // Arc 2 i + 1 is arc 2 i turned around.
  std::vector<std::int32_t> to_;
  std::vector<std::int32_t> next_;  // of the same node
  std::vector<Bytes> left_;
  std::vector<std::int32_t> first_;  // by node
  std::vector<std::int32_t> level_;
  std::vector<std::int32_t> at_;  // by node: the arc to try next
  std::vector<std::int32_t> queue_;
};

}  // namespace memplan
