// How high each section is in use, and which buffers wait to be placed on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include "memplan/sections.h"
#include "memplan/types.h"
#include "util/invariants.h"

namespace memplan {

constexpr SectionIdx kNowhere = -1;
constexpr std::int32_t kNoneWaits = std::numeric_limits<std::int32_t>::max();

struct Summit {
  Bytes height;
  SectionIdx section;
};

// The buffer with the lowest row, and of equal ones the first in the order.
struct Waiting {
  Bytes row;
  std::int32_t place;
  bool operator<(const Waiting& other) const {
    return std::tie(row, place) < std::tie(other.row, other.place);
  }
  bool operator>(const Waiting& other) const { return other < *this; }
};

// Heights over sections, which only grow, and the buffers that wait on each section. The row of a
// waiting buffer is not below the height of its section and rises with it, so that no buffer is
// visited when a height grows. It is a tree: a node has the greatest height below it, one of the
// sections that have it (the nearest to the fullest of all, where it will last), and the lowest
// section on which a buffer waits.
class Skyline {
 public:
  explicit Skyline(const std::vector<Bytes>& load)
      : fullest_(
            static_cast<SectionIdx>(std::max_element(load.begin(), load.end()) - load.begin())),
        waiting_(load.size()) {
    while (leaves_ < load.size()) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
  }

  Summit over(const Span& span) const { return over(root(), span); }

  // Raises the sections of the span to a height, where they are lower.
  void raise(const Span& span, Bytes height) { raise(root(), span, height); }

  void wait(SectionIdx section, std::int32_t place) {
    MEMPLAN_ASSERT(section >= 0 && section < static_cast<SectionIdx>(waiting_.size()));
    std::vector<std::int32_t>& all = waiting_[section];
    all.push_back(place);
    std::push_heap(all.begin(), all.end(), std::greater<>());
    if (all.front() == place) show(section);
  }

  // The turn of the first of those that wait.
  Waiting next() const { return lowest(nodes_[1]); }

  // A node summarises its children; a leaf has the first of its heap.
  bool check_invariants() const {
    for (std::size_t at = 1; at < leaves_; ++at) {
      const Node& node = nodes_[at];
      const Node& lower = nodes_[2 * at];
      const Node& upper = nodes_[2 * at + 1];
      MEMPLAN_ASSERT(node.first == std::min(lower.first, upper.first));
      MEMPLAN_ASSERT(node.summit.height >= std::max(lower.summit.height, upper.summit.height));
      if (node.flat) continue;
      MEMPLAN_ASSERT(node.summit.height == std::max(lower.summit.height, upper.summit.height));
      const Waiting next = std::min(lowest(lower), lowest(upper));
      MEMPLAN_ASSERT(node.next.row == next.row && node.next.place == next.place);
    }
    for (std::size_t s = 0; s < waiting_.size(); ++s) {
      const std::vector<std::int32_t>& all = waiting_[s];
      MEMPLAN_ASSERT(nodes_[leaves_ + s].flat);
      MEMPLAN_ASSERT(std::is_heap(all.begin(), all.end(), std::greater<>()));
      MEMPLAN_ASSERT(nodes_[leaves_ + s].first == (all.empty() ? kNoneWaits : all.front()));
    }
    return true;
  }

  // Removes the buffer of next().
  void pop() {
    const std::int32_t place = next().place;
    bool level = false;
    std::size_t node = 1;
    while (node < leaves_) {
      level = level || nodes_[node].flat;
      node *= 2;
      const Node& lower = nodes_[node];
      if ((level ? lower.first : lowest(lower).place) != place) ++node;
    }
    const auto section = static_cast<SectionIdx>(node - leaves_);
    std::vector<std::int32_t>& all = waiting_[section];
    MEMPLAN_ASSERT(!all.empty() && all.front() == place);
    std::pop_heap(all.begin(), all.end(), std::greater<>());
    all.pop_back();
    show(section);
  }

 private:
  struct Node {
    Summit summit{0, 0};
    bool flat = true;                 // as high in all sections: no height below the node counts
    std::int32_t first = kNoneWaits;  // of all that wait
    Waiting next{0, kNoneWaits};      // of those that wait, where it is not flat
  };
  struct Range {
    std::size_t node;
    SectionIdx first;
    SectionIdx last;
  };

  Range root() const { return {1, 0, static_cast<SectionIdx>(leaves_) - 1}; }
  static Range left(const Range& r) {
    return {2 * r.node, r.first, r.first + (r.last - r.first) / 2};
  }
  static Range right(const Range& r) {
    return {2 * r.node + 1, r.first + (r.last - r.first) / 2 + 1, r.last};
  }

  Summit level(Bytes height, SectionIdx first, SectionIdx last) const {
    return {height, std::clamp(fullest_, first, last)};
  }

  Summit higher(const Summit& a, const Summit& b) const {
    if (a.height != b.height) return a.height > b.height ? a : b;
    return std::abs(a.section - fullest_) < std::abs(b.section - fullest_) ? a : b;
  }

  static Waiting lowest(const Node& node) {
    if (node.first == kNoneWaits) return {kMaxBytes, kNoneWaits};
    return node.flat ? Waiting{node.summit.height, node.first} : node.next;
  }

  void flatten(const Range& range, Bytes height) {
    MEMPLAN_ASSERT(nodes_[range.node].summit.height <= height);  // heights only grow
    nodes_[range.node].summit = level(height, range.first, range.last);
    nodes_[range.node].flat = true;
  }

  void merge(std::size_t at) {
    Node& node = nodes_[at];
    const Node& lower = nodes_[2 * at];
    const Node& upper = nodes_[2 * at + 1];
    node.first = std::min(lower.first, upper.first);
    if (node.flat) return;
    node.summit = higher(lower.summit, upper.summit);
    node.next = std::min(lowest(lower), lowest(upper));
  }

  // Updates the tree after the heap of the section has changed.
  void show(SectionIdx section) {
    const std::vector<std::int32_t>& all = waiting_[section];
    std::size_t node = leaves_ + static_cast<std::size_t>(section);
    nodes_[node].first = all.empty() ? kNoneWaits : all.front();
    while ((node /= 2) > 0) merge(node);
  }

  Summit over(const Range& range, const Span& span) const {
    const Node& node = nodes_[range.node];
    if (node.flat) {
      return level(node.summit.height, std::max(span.first, range.first),
                   std::min(span.last, range.last));
    }
    if (span.first <= range.first && range.last <= span.last) return node.summit;
    if (span.last <= left(range).last) return over(left(range), span);
    if (span.first >= right(range).first) return over(right(range), span);
    return higher(over(left(range), span), over(right(range), span));
  }

  void raise(const Range& range, const Span& span, Bytes height) {
    Node& node = nodes_[range.node];
    const bool all = span.first <= range.first && range.last <= span.last;
    if (all && node.summit.height <= height) return flatten(range, height);
    if (all && node.flat) return;
    if (node.flat) {
      flatten(left(range), node.summit.height);
      flatten(right(range), node.summit.height);
      node.flat = false;
    }
    if (span.first <= left(range).last) raise(left(range), span, height);
    if (span.last >= right(range).first) raise(right(range), span, height);
    merge(range.node);
  }

  std::size_t leaves_ = 1;
  SectionIdx fullest_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::int32_t>> waiting_;  // a heap of places for each section
};

}  // namespace memplan
