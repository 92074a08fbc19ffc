#include "greedy/occupancy.h"

#include <algorithm>
#include <limits>

namespace memplan {

namespace {

// Placing in a node costs about as much as looking at so many intervals (measured).
constexpr std::int64_t kStepsPerNode = 32;

// The nodes that make up the sections first..last, the one with `first` in front and the one
// with `last` at the back. Node i has the children 2i and 2i + 1; section s is node leaves + s.
void make_up(std::size_t leaves, const Span& span, std::vector<std::size_t>* nodes) {
  nodes->clear();
  std::size_t left = leaves + static_cast<std::size_t>(span.first);
  std::size_t right = leaves + static_cast<std::size_t>(span.last) + 1;
  std::size_t tail[64];
  std::size_t count = 0;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) nodes->push_back(left++);
    if (right % 2 == 1) tail[count++] = --right;
  }
  while (count > 0) nodes->push_back(tail[--count]);
}

}  // namespace

Occupancy::Occupancy(const Problem& problem, const Sections& sections)
    : problem_(problem),
      sections_(sections),
      leaves_(static_cast<std::size_t>(sections.count)),
      cover_(leaves_),
      touch_(2 * leaves_),
      blocks_(problem),
      neighbours_(problem) {
  for (const Reserved& r : problem.reserved) reserved_.push_back({r.lower, r.upper});
}

void Occupancy::clear() {
  cover_.clear();
  touch_.clear();
  neighbours_.clear();
}

void Occupancy::place(BufferIdx b, Bytes offset) {
  blocks_.for_each(b, [&](BufferIdx member, Bytes shift) {
    for (auto i = sections_.span_begin[member]; i < sections_.span_begin[member + 1]; ++i) {
      place_span(sections_.spans[i], offset + shift);
    }
    if (!problem_.conflicts.empty()) neighbours_.place(member, offset + shift);
  });
}

void Occupancy::place_span(const Span& span, Bytes offset) {
  const Interval held{offset + span.lower, offset + span.upper};
  make_up(leaves_, span, &nodes_);
  for (const std::size_t node : nodes_) {
    if (node < leaves_) cover_.add(node, held);
    touch_.add(node, held);
  }
  // Every ancestor of a node in between is also one of the first or of the last. What a node
  // touches its ancestors touch, so the way up ends where nothing is new.
  for (const std::size_t end : {nodes_.front(), nodes_.back()}) {
    for (std::size_t node = end / 2; node > 0 && touch_.add(node, held); node /= 2) {
    }
  }
  steps_ += kStepsPerNode * static_cast<std::int64_t>(nodes_.size());
}

void Occupancy::look_at(const IntervalLists& lists, std::size_t list, const Reach& reach) {
  if (lists.empty(list)) return;
  cursors_.push_back({lists.begin(list), lists.end(list), reach});
}

void Occupancy::gather_span(const Span& span, Bytes shift) {
  const Reach reach{shift + span.lower, shift + span.upper};
  make_up(leaves_, span, &nodes_);
  for (const std::size_t node : nodes_) look_at(touch_, node, reach);
  // A parent has a smaller number than its children: the two ways up meet where they are equal.
  std::size_t left = nodes_.front() / 2;
  std::size_t right = nodes_.back() / 2;
  while (left != right) {
    std::size_t& lower = left > right ? left : right;
    look_at(cover_, lower, reach);
    lower /= 2;
  }
  for (; left > 0; left /= 2) look_at(cover_, left, reach);
}

void Occupancy::gather(BufferIdx b) {
  cursors_.clear();
  blocks_.for_each(b, [this](BufferIdx member, Bytes shift) {
    for (auto i = sections_.span_begin[member]; i < sections_.span_begin[member + 1]; ++i) {
      gather_span(sections_.spans[i], shift);
    }
    if (!reserved_.empty() && problem_.size[member] > 0) {
      cursors_.push_back({reserved_.data(),
                          reserved_.data() + reserved_.size(),
                          {shift, shift + problem_.size[member]}});
    }
  });
  if (!problem_.conflicts.empty()) gather_neighbours(b);
}

// The lists of all members are in one vector, so cursors wait until it has stopped growing.
void Occupancy::gather_neighbours(BufferIdx b) {
  barred_.clear();
  barred_end_.clear();
  blocks_.for_each(b, [this](BufferIdx member, Bytes) {
    steps_ += neighbours_.list(member, &barred_);
    barred_end_.push_back(barred_.size());
  });
  std::size_t begin = 0;
  auto end = barred_end_.begin();
  blocks_.for_each(b, [&](BufferIdx member, Bytes shift) {
    if (begin < *end) {
      cursors_.push_back(
          {barred_.data() + begin, barred_.data() + *end, {shift, shift + problem_.size[member]}});
    }
    begin = *end++;
  });
}

// The least offset at which the span of the cursor is above its next interval, or kNoOffset if
// that is above `top`. Compared before it is computed: leads are as great as offsets, and the sum
// of both and an alignment may be no number.
Bytes Occupancy::raised_above(const Cursor& c, const Shape& shape, Bytes top) {
  if (c.at->upper > top + c.reach.lower) return kNoOffset;
  const Bytes offset = shape.align(c.at->upper - c.reach.lower);
  return offset > top ? kNoOffset : offset;
}

// Raises the offset until no list objects. Every list moves up with it and never back, so all
// the calls for one buffer together read every interval at most once; a list that has ended is
// let go.
Bytes Occupancy::settle(Bytes offset, const Shape& shape, Bytes top) {
  std::size_t agreed = 0;
  std::size_t i = 0;
  while (agreed < cursors_.size()) {
    if (i >= cursors_.size()) i = 0;
    Cursor& c = cursors_[i];
    ++agreed;
    ++steps_;
    for (; c.at != c.end; ++c.at, ++steps_) {
      if (c.at->upper <= offset + c.reach.lower) continue;
      if (c.at->lower >= offset + c.reach.upper) break;
      offset = raised_above(c, shape, top);
      if (offset == kNoOffset) return kNoOffset;
      agreed = 1;
    }
    if (c.at == c.end) {
      cursors_.erase(cursors_.begin() + static_cast<std::ptrdiff_t>(i));
      --agreed;
    } else {
      ++i;
    }
  }
  return offset;
}

bool Occupancy::admits(BufferIdx b, Bytes pin, Bytes limit) {
  if (blocks_.any()) return first_fit(b, pin, limit) == pin;
  return pin + problem_.size[b] <= limit;
}

Bytes Occupancy::first_fit(BufferIdx b, Bytes from, Bytes limit) {
  const Shape shape = blocks_.shape(b);
  const Bytes top = limit - shape.above;  // the highest offset allowed
  from = std::max(from, shape.below);
  if (from > top) return kNoOffset;
  const Bytes offset = shape.align(from);
  if (offset > top) return kNoOffset;
  gather(b);
  return settle(offset, shape, top);
}

Bytes Occupancy::best_fit(BufferIdx b, Bytes limit) {
  const Shape shape = blocks_.shape(b);
  const Bytes top = limit - shape.above;
  if (shape.below > top) return kNoOffset;
  Bytes offset = shape.align(shape.below);
  if (offset > top) return kNoOffset;
  gather(b);
  Bytes best = kNoOffset;
  Bytes best_room = std::numeric_limits<Bytes>::max();
  offset = settle(offset, shape, top);
  while (offset != kNoOffset) {
    // Each cursor stands at its first interval above; the buffer could rise to the nearest.
    const Cursor* ceiling = nullptr;
    Bytes room = std::numeric_limits<Bytes>::max();
    for (const Cursor& c : cursors_) {
      if (c.at == c.end || c.at->lower - (offset + c.reach.upper) >= room) continue;
      room = c.at->lower - (offset + c.reach.upper);
      ceiling = &c;
    }
    steps_ += static_cast<std::int64_t>(cursors_.size());
    if (ceiling == nullptr) return best == kNoOffset ? offset : best;
    if (room < best_room) {
      best = offset;
      best_room = room;
    }
    if (room == 0) return best;
    offset = raised_above(*ceiling, shape, top);
    if (offset != kNoOffset) offset = settle(offset, shape, top);
  }
  return best;
}

}  // namespace memplan
