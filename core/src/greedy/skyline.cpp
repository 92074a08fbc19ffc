// TelaMalloc's baseline (source 001, section 3.1 and figure 4).
//
//   |        . . . .            The skyline is the highest address in use in each section. Rows
//   |   +--+      +---+         are taken bottom-up: of the buffers that fit on the current row
//   |---+  +------+   +---      (nothing of the skyline above it anywhere in their lifetime),
//   +-----------------------    the first in the order; then the next higher row.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "greedy/passes.h"

namespace memplan {

namespace {

// A turn costs a few walks down a tree: about as many steps of the first fit.
constexpr std::int64_t kStepsPerTurn = 32;
constexpr SectionIdx kNowhere = -1;
constexpr std::int32_t kNobody = std::numeric_limits<std::int32_t>::max();

struct Summit {
  Bytes height;
  SectionIdx section;
};

// Who has the lowest row, and of those the first place in the order.
struct Turn {
  Bytes row;
  std::int32_t place;
  bool operator<(const Turn& other) const {
    return std::tie(row, place) < std::tie(other.row, other.place);
  }
  bool operator>(const Turn& other) const { return other < *this; }
};

// Heights over sections, which only grow, and who waits on which section: the row of whoever does
// is not below its height, and rises with it, without a look at any of them. A tree, with the
// greatest height below each node, one of the sections that have it (the nearest to the fullest of
// all, where it will last), and the lowest section that somebody waits on.
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

  // To a height, where it is lower.
  void raise(const Span& span, Bytes height) { raise(root(), span, height); }

  void wait(SectionIdx section, std::int32_t place) {
    std::vector<std::int32_t>& all = waiting_[section];
    all.push_back(place);
    std::push_heap(all.begin(), all.end(), std::greater<>());
    if (all.front() == place) show(section);
  }

  // The turn of the first of those that wait.
  Turn next() const { return lowest(nodes_[1]); }

  // Takes that one out.
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
    std::pop_heap(all.begin(), all.end(), std::greater<>());
    all.pop_back();
    show(section);
  }

 private:
  struct Node {
    Summit summit{0, 0};
    bool flat = true;              // as high in all sections: no height below the node counts
    std::int32_t first = kNobody;  // of all that wait
    Turn next{0, kNobody};         // of those that wait, where it is not flat
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

  static Turn lowest(const Node& node) {
    if (node.first == kNobody) return {kMaxBytes, kNobody};
    return node.flat ? Turn{node.summit.height, node.first} : node.next;
  }

  void flatten(const Range& range, Bytes height) {
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

  // Whoever waits on the section now.
  void show(SectionIdx section) {
    const std::vector<std::int32_t>& all = waiting_[section];
    std::size_t node = leaves_ + static_cast<std::size_t>(section);
    nodes_[node].first = all.empty() ? kNobody : all.front();
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

}  // namespace

// The row of a buffer is the lowest offset at which all of it, and of what moves with it, is above
// the skyline. Rows only rise, so that the first of those with the lowest known row is the next by
// the rule above, if that row is still right; if not, it goes back. Pins and reserved ranges may
// stand above the skyline, with room to pass below: they are asked for the first free place at or
// above the row. Conflicts beyond lifetimes have a skyline of their own for each buffer.
Draft Passes::on_skyline(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  if (!begin(limits, &draft)) return draft;
  Skyline skyline(loads(sections_));
  std::vector<Bytes> neighbours(problem_.conflicts.empty() ? 0 : problem_.size.size(), 0);
  const Blocks& blocks = occupancy_.blocks();
  const bool obstacles = draft.nodes > 0 || !problem_.reserved.empty();
  const auto row_of = [&](BufferIdx b) {
    Summit row{0, kNowhere};
    blocks.for_each(b, [&](BufferIdx member, Bytes shift) {
      for (auto i = sections_.span_begin[member]; i < sections_.span_begin[member + 1]; ++i) {
        const Span& span = sections_.spans[i];
        const Summit found = skyline.over(span);
        const Bytes height = found.height - span.lower - shift;
        if (height < row.height) continue;
        row = {height, height == found.height ? found.section : kNowhere};
      }
      if (!neighbours.empty() && neighbours[member] - shift > row.height) {
        row = {neighbours[member] - shift, kNowhere};
      }
    });
    const Shape shape = blocks.shape(b);
    Bytes at = kNoOffset;
    if (row.height <= limits.bytes - shape.above) {
      at = obstacles ? occupancy_.first_fit(b, row.height, limits.bytes)
                     : shape.align(std::max(row.height, shape.below));
      if (at > limits.bytes - shape.above) at = kNoOffset;
    }
    return Summit{at, at == row.height ? row.section : kNowhere};
  };
  const auto raise = [&](BufferIdx member, Bytes offset) {
    for (auto i = sections_.span_begin[member]; i < sections_.span_begin[member + 1]; ++i) {
      skyline.raise(sections_.spans[i], offset + sections_.spans[i].upper);
    }
    if (problem_.size[member] == 0) return;
    for (auto i = problem_.conflicts.first(member); i != problem_.conflicts.last(member); ++i) {
      if (problem_.size[*i] == 0) continue;
      neighbours[*i] = std::max(neighbours[*i], offset + problem_.size[member]);
    }
  };

  // Those whose rows no section alone explains; and all, at first.
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> apart;
  const std::vector<BufferIdx> firsts = blocks.firsts(order);
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    if (draft.offsets[firsts[i]] == kNoOffset) apart.push({0, static_cast<std::int32_t>(i)});
  }
  for (std::int64_t turns = 1;; ++turns) {
    Turn next = skyline.next();
    if (!apart.empty() && apart.top() < next) {
      next = apart.top();
      apart.pop();
    } else if (next.place != kNobody) {
      skyline.pop();
    } else {
      break;
    }
    if (!in_budget(limits, draft)) return draft;
    const BufferIdx b = firsts[next.place];
    const Summit row = row_of(b);
    draft.steps = occupancy_.steps() - steps_before_ + kStepsPerTurn * turns;
    if (row.height == kNoOffset) {
      draft.stuck = b;
      return draft;
    }
    if (row.height > next.row && row.section == kNowhere) {
      apart.push({row.height, next.place});
    } else if (row.height > next.row) {
      skyline.wait(row.section, next.place);
    } else {
      note(b, row.height, &draft);
      blocks.for_each(b, [&](BufferIdx member, Bytes shift) { raise(member, row.height + shift); });
    }
  }
  draft.complete = true;
  return draft;
}

}  // namespace memplan
