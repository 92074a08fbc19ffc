// TelaMalloc's baseline (section 3.1 and figure 4).
//
//   |        . . . .            The skyline is the highest address in use in each section. Rows
//   |   +--+      +---+         are taken bottom-up: of the buffers that fit on the current row
//   |---+  +------+   +---      (nothing of the skyline above it anywhere in their lifetime),
//   +-----------------------    the first in the order; then the next higher row.
#include "greedy/skyline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "greedy/passes.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// A turn costs a few walks down a tree: about as many steps of the first fit.
constexpr std::int64_t kStepsPerTurn = 32;

}  // namespace

// The row of a buffer is the lowest offset at which all of it, and of what moves with it, is above
// the skyline. Rows only rise, so that the first of those with the lowest known row is the next by
// the rule above, if that row is still right; if not, it goes back. Pins and reserved ranges may
// stand above the skyline, with room to pass below: the occupancy then gives the first free place
// at or above the row. Conflicts beyond lifetimes have a skyline of their own for each buffer.
Draft Passes::on_skyline(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  if (!place_pinned(limits, &draft)) return draft;
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

  // Buffers with a row that no single section explains wait here, and all of them do at first.
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> apart;
  const std::vector<BufferIdx> firsts = blocks.firsts(order);
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    if (draft.offsets[firsts[i]] == kNoOffset) apart.push({0, static_cast<std::int32_t>(i)});
  }
  for (std::int64_t turns = 1;; ++turns) {
    Waiting next = skyline.next();
    if (!apart.empty() && apart.top() < next) {
      next = apart.top();
      apart.pop();
    } else if (next.place != kNoneWaits) {
      skyline.pop();
    } else {
      break;
    }
    if (!in_budget(limits, draft)) return draft;
    const BufferIdx b = firsts[next.place];
    const Summit row = row_of(b);
    draft.steps = steps() + kStepsPerTurn * turns;
    if (row.height == kNoOffset) {
      draft.stuck = b;
      return draft;
    }
    MEMPLAN_ASSERT(row.height >= next.row);  // rows only rise
    if (row.height > next.row && row.section == kNowhere) {
      apart.push({row.height, next.place});
    } else if (row.height > next.row) {
      skyline.wait(row.section, next.place);
    } else {
      note(b, row.height, &draft);
      blocks.for_each(b, [&](BufferIdx member, Bytes shift) { raise(member, row.height + shift); });
    }
  }
  MEMPLAN_ASSERT(std::count(draft.offsets.begin(), draft.offsets.end(), kNoOffset) == 0);
  MEMPLAN_ASSERT(draft.peak <= limits.bytes && skyline.check_invariants());
  draft.complete = true;
  return draft;
}

}  // namespace memplan
