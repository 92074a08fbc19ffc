#include "model/occupancy.h"

#include <algorithm>
#include <limits>

#include "util/invariants.h"

namespace memplan {

namespace {

// Placing in a node costs about as much as visits to so many intervals (measured).
constexpr std::int64_t kStepsPerNode = 32;

// The nodes that make up the sections first..last, the one with `first` in front and the one
// with `last` at the back. Node i has the children 2i and 2i + 1; section s is node leaves + s.
class MakeUp {
 public:
  MakeUp(std::size_t leaves, const Span& span) {
    std::size_t left = leaves + static_cast<std::size_t>(span.first);
    std::size_t right = leaves + static_cast<std::size_t>(span.last) + 1;
    std::size_t* last = nodes_ + kMost;
    for (; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) *end_++ = left++;
      if (right % 2 == 1) *--last = --right;
    }
    MEMPLAN_ASSERT(end_ <= last);
    end_ = std::copy(last, nodes_ + kMost, end_);
  }

  const std::size_t* begin() const { return nodes_; }
  const std::size_t* end() const { return end_; }
  std::size_t front() const { return nodes_[0]; }
  std::size_t back() const { return end_[-1]; }
  std::ptrdiff_t size() const { return end_ - nodes_; }

 private:
  static constexpr std::ptrdiff_t kMost = 128;  // two at every height
  std::size_t nodes_[kMost];
  std::size_t* end_ = nodes_;
};

}  // namespace

Occupancy::Occupancy(const Problem& problem, const Sections& sections)
    : problem_(problem),
      sections_(sections),
      leaves_(static_cast<std::size_t>(sections.count)),
      cover_(leaves_),
      covered_(leaves_, 0),
      touch_(2 * leaves_),
      blocks_(problem),
      neighbours_(problem) {
  for (const Reserved& r : problem.reserved) reserved_.push_back({r.lower, r.upper});
}

void Occupancy::clear() {
  cover_.clear();
  std::fill(covered_.begin(), covered_.end(), 0);
  touch_.clear();
  neighbours_.clear();
}

void Occupancy::place(BufferIdx b, Bytes offset) {
  blocks_.for_each(b, [&](BufferIdx member, Bytes shift) {
    MEMPLAN_ASSERT(offset + shift >= 0 && offset + shift <= kMaxBytes - problem_.size[member]);
    for (auto i = sections_.span_begin[member]; i < sections_.span_begin[member + 1]; ++i) {
      place_span(sections_.spans[i], offset + shift);
    }
    if (!problem_.conflicts.empty()) neighbours_.place(member, offset + shift);
  });
}

void Occupancy::place_span(const Span& span, Bytes offset) {
  const Interval held{offset + span.lower, offset + span.upper};
  const MakeUp nodes(leaves_, span);
  for (const std::size_t node : nodes) {
    if (node < leaves_) cover(node, held);
    touch_.add(node, held);
  }
  // Every ancestor of a node in between is also one of the first or of the last. What a node
  // touches its ancestors touch, so the way up ends where nothing is new.
  for (const std::size_t end : {nodes.front(), nodes.back()}) {
    for (std::size_t node = end / 2; node > 0 && touch_.add(node, held); node /= 2) {
    }
  }
  steps_ += kStepsPerNode * nodes.size();
}

// The first cover of a node is noted in all nodes below it.
void Occupancy::cover(std::size_t node, Interval held) {
  if (cover_.empty(node)) {
    std::size_t first = node;
    std::size_t last = node;  // inclusive
    for (; first < leaves_; first *= 2, last = 2 * last + 1) {
      const std::size_t end = std::min(last + 1, leaves_);
      for (std::size_t below = first; below < end; ++below) {
        covered_[below] = std::max(covered_[below], static_cast<std::uint32_t>(node));
      }
    }
  }
  cover_.add(node, held);
}

void Occupancy::look_at(const IntervalLists& lists, std::size_t list, const Reach& reach) {
  if (lists.empty(list)) return;
  cursors_.push_back({lists.begin(list), lists.end(list), reach});
}

void Occupancy::gather_span(const Span& span, Bytes shift) {
  const Reach reach{shift + span.lower, shift + span.upper};
  const MakeUp nodes(leaves_, span);
  for (const std::size_t node : nodes) look_at(touch_, node, reach);
  // A parent has a smaller number than its children: the two ways up meet where they are equal.
  std::size_t left = covered_[nodes.front() / 2];
  std::size_t right = covered_[nodes.back() / 2];
  while (left != right) {
    std::size_t& lower = left > right ? left : right;
    look_at(cover_, lower, reach);
    lower = covered_[lower / 2];
  }
  for (; left > 0; left = covered_[left / 2]) look_at(cover_, left, reach);
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

// The lists of all members are in one vector, so cursors are made only when it has stopped growing.
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

// The least offset at which what reaches so far is above an interval, or kNoOffset if that is above
// `top`. Compared before it is computed: leads are as great as offsets, and the sum of both and an
// alignment may be no number.
Bytes Occupancy::raised_above(const Interval& below, const Reach& reach, const Shape& shape,
                              Bytes top) {
  if (below.upper > top + reach.lower) return kNoOffset;
  const Bytes offset = shape.align(below.upper - reach.lower);
  MEMPLAN_ASSERT(offset + reach.lower >= below.upper);
  return offset > top ? kNoOffset : offset;
}

// Raises the offset until it is free in every list. Every list moves up with it and never back, so
// all the calls for one buffer together read every interval at most once.
Bytes Occupancy::settle(Bytes offset, const Shape& shape, Bytes top) {
  Cursor* const first = cursors_.data();
  Cursor* const last = first + cursors_.size();
  Cursor* c = first;
  for (std::size_t agreed = 0; agreed < cursors_.size(); ++agreed) {
    if (c == last) c = first;
    const Interval* at = c->at;
    for (; at != c->end; ++at) {
      if (at->upper <= offset + c->reach.lower) continue;
      if (at->lower >= offset + c->reach.upper) break;
      offset = raised_above(*at, c->reach, shape, top);
      if (offset == kNoOffset) return kNoOffset;
      agreed = 0;
    }
    steps_ += 1 + (at - c->at);
    c->at = at;
    ++c;
  }
  MEMPLAN_ASSERT(offset <= top && is_free(offset));
  return offset;
}

bool Occupancy::is_free(Bytes offset) const {
  if (!kAssertions) return true;
  return std::all_of(cursors_.begin(), cursors_.end(), [offset](const Cursor& c) {
    return c.at == c.end ||
           (c.at->upper > offset + c.reach.lower && c.at->lower >= offset + c.reach.upper);
  });
}

bool Occupancy::check_invariants() const {
  MEMPLAN_ASSERT(cover_.check_invariants() && touch_.check_invariants());
  MEMPLAN_ASSERT(neighbours_.check_invariants() && blocks_.check_invariants());
  for (std::size_t node = 1; node < 2 * leaves_; ++node) {
    for (const Interval* i = touch_.begin(node); i != touch_.end(node) && node > 1; ++i) {
      MEMPLAN_ASSERT(touch_.covers(node / 2, *i));
    }
    if (node >= leaves_) continue;
    for (const Interval* i = cover_.begin(node); i != cover_.end(node); ++i) {
      MEMPLAN_ASSERT(touch_.covers(node, *i));
    }
    std::size_t nearest = node;
    while (nearest > 0 && cover_.empty(nearest)) nearest /= 2;
    MEMPLAN_ASSERT(covered_[node] == nearest);
  }
  return true;
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
  MEMPLAN_ASSERT(offset >= shape.below && (offset + shape.phase) % shape.alignment == 0);
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
    MEMPLAN_ASSERT(room >= 0 && is_free(offset));
    steps_ += static_cast<std::int64_t>(cursors_.size());
    if (ceiling == nullptr) return best == kNoOffset ? offset : best;
    if (room < best_room) {
      best = offset;
      best_room = room;
    }
    if (room == 0) return best;
    offset = raised_above(*ceiling->at, ceiling->reach, shape, top);
    if (offset != kNoOffset) offset = settle(offset, shape, top);
  }
  return best;
}

}  // namespace memplan
