// TelaMalloc's baseline (source 001, section 3.1 and figure 4).
//
//   |        . . . .            The skyline is the highest address in use in each section. Rows
//   |   +--+      +---+         are taken bottom-up: of the buffers that fit on the current row
//   |---+  +------+   +---      (nothing of the skyline above it anywhere in their lifetime),
//   +-----------------------    the first in the order; then the next higher row.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "greedy/passes.h"

namespace memplan {

namespace {

// A row costs a heap operation and a walk over the tree: about as many steps of the first fit.
constexpr std::int64_t kStepsPerRow = 32;

// Heights over sections, which only grow: a tree with the greatest height below each node, and
// the greatest that was given to all of it.
class Skyline {
 public:
  explicit Skyline(SectionIdx sections)
      : leaves_(static_cast<std::size_t>(sections)), top_(2 * leaves_, 0), all_(2 * leaves_, 0) {}

  Bytes over(const Span& span) const {
    Bytes height = 0;
    std::size_t left = leaves_ + static_cast<std::size_t>(span.first);
    std::size_t right = leaves_ + static_cast<std::size_t>(span.last) + 1;
    const std::size_t ends[] = {left, right - 1};
    for (; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) height = std::max(height, top_[left++]);
      if (right % 2 == 1) height = std::max(height, top_[--right]);
    }
    for (std::size_t node : ends) {
      for (; node > 0; node /= 2) height = std::max(height, all_[node]);
    }
    return height;
  }

  void raise(const Span& span, Bytes height) {
    std::size_t left = leaves_ + static_cast<std::size_t>(span.first);
    std::size_t right = leaves_ + static_cast<std::size_t>(span.last) + 1;
    const std::size_t ends[] = {left, right - 1};
    for (; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) give(left++, height);
      if (right % 2 == 1) give(--right, height);
    }
    for (std::size_t node : ends) {
      for (; node > 0; node /= 2) top_[node] = std::max(top_[node], height);
    }
  }

 private:
  void give(std::size_t node, Bytes height) {
    all_[node] = std::max(all_[node], height);
    top_[node] = std::max(top_[node], height);
  }

  std::size_t leaves_;
  std::vector<Bytes> top_;
  std::vector<Bytes> all_;
};

struct Candidate {
  Bytes row;
  std::size_t place;  // in the order
  bool operator>(const Candidate& other) const {
    return std::tie(row, place) > std::tie(other.row, other.place);
  }
};

}  // namespace

// The row of a buffer is the lowest offset at which all of it, and of what moves with it, is above
// the skyline. Rows only rise, so a candidate on top of the heap whose row is still right is the
// next by the rule above; one whose row has risen goes back. Pins and reserved ranges may stand
// above the skyline, with room to pass below: they are asked for the first free place at or above
// the row. Conflicts beyond lifetimes have a skyline of their own for each buffer.
Draft Passes::on_skyline(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  if (!begin(limits, &draft)) return draft;
  Skyline skyline(sections_.count);
  std::vector<Bytes> neighbours(problem_.conflicts.empty() ? 0 : problem_.size.size(), 0);
  const Blocks& blocks = occupancy_.blocks();
  const bool obstacles = draft.nodes > 0 || !problem_.reserved.empty() || blocks.any();
  const auto row_of = [&](BufferIdx b) {
    Bytes row = 0;
    blocks.for_each(b, [&](BufferIdx member, Bytes shift) {
      for (auto i = sections_.span_begin[member]; i < sections_.span_begin[member + 1]; ++i) {
        const Span& span = sections_.spans[i];
        row = std::max(row, skyline.over(span) - span.lower - shift);
      }
      if (!neighbours.empty()) row = std::max(row, neighbours[member] - shift);
    });
    if (row > limits.bytes) return kNoOffset;
    if (obstacles) return occupancy_.first_fit(b, row, limits.bytes);
    row = align_up(row, problem_.alignment_of(b));
    return row > limits.bytes - problem_.size[b] ? kNoOffset : row;
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

  std::vector<Candidate> heap;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (draft.offsets[order[i]] == kNoOffset) heap.push_back({0, i});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(),
                                                                               std::move(heap));
  std::int64_t rows = 0;
  while (!queue.empty()) {
    if (!in_budget(limits, draft)) return draft;
    const Candidate next = queue.top();
    queue.pop();
    const BufferIdx b = order[next.place];
    if (draft.offsets[b] != kNoOffset) continue;  // it went with its group
    const Bytes row = row_of(b);
    draft.steps = occupancy_.steps() - steps_before_ + kStepsPerRow * ++rows;
    if (row == kNoOffset) return draft;
    if (row > next.row) {
      queue.push({row, next.place});
      continue;
    }
    note(b, row, &draft);
    blocks.for_each(b, [&](BufferIdx member, Bytes shift) { raise(member, row + shift); });
  }
  draft.complete = true;
  return draft;
}

}  // namespace memplan
