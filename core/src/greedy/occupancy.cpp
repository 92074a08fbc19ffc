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
      touch_(2 * leaves_) {
  for (const Reserved& r : problem.reserved) reserved_.push_back({r.lower, r.upper});
}

void Occupancy::clear() {
  cover_.clear();
  touch_.clear();
}

void Occupancy::place(BufferIdx b, Bytes offset) {
  for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
    const Span& span = sections_.spans[i];
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
}

void Occupancy::look_at(const IntervalLists& lists, std::size_t list, const Span& span) {
  if (lists.empty(list)) return;
  cursors_.push_back({lists.begin(list), lists.end(list), span.lower, span.upper});
}

void Occupancy::gather_span(const Span& span) {
  make_up(leaves_, span, &nodes_);
  for (const std::size_t node : nodes_) look_at(touch_, node, span);
  // A parent has a smaller number than its children: the two ways up meet where they are equal.
  std::size_t left = nodes_.front() / 2;
  std::size_t right = nodes_.back() / 2;
  while (left != right) {
    std::size_t& lower = left > right ? left : right;
    look_at(cover_, lower, span);
    lower /= 2;
  }
  for (; left > 0; left /= 2) look_at(cover_, left, span);
}

void Occupancy::gather(BufferIdx b) {
  cursors_.clear();
  for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
    gather_span(sections_.spans[i]);
  }
  if (!reserved_.empty() && problem_.size[b] > 0) {
    cursors_.push_back(
        {reserved_.data(), reserved_.data() + reserved_.size(), 0, problem_.size[b]});
  }
}

// Raises the offset until no list objects. Every list moves up with it and never back, so all
// the calls for one buffer together read every interval at most once; a list that has ended is
// let go.
Bytes Occupancy::settle(Bytes offset, Bytes alignment, Bytes top) {
  std::size_t agreed = 0;
  std::size_t i = 0;
  while (agreed < cursors_.size()) {
    if (i >= cursors_.size()) i = 0;
    Cursor& c = cursors_[i];
    ++agreed;
    ++steps_;
    for (; c.at != c.end; ++c.at, ++steps_) {
      if (c.at->upper <= offset + c.lower) continue;
      if (c.at->lower >= offset + c.upper) break;
      offset = align_up(c.at->upper - c.lower, alignment);
      if (offset > top) return kNoOffset;
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

Bytes Occupancy::first_fit(BufferIdx b, Bytes from, Bytes limit) {
  const Bytes alignment = problem_.alignment_of(b);
  const Bytes top = limit - problem_.size[b];  // the highest offset allowed
  const Bytes offset = align_up(from, alignment);
  if (offset > top) return kNoOffset;
  gather(b);
  return settle(offset, alignment, top);
}

Bytes Occupancy::best_fit(BufferIdx b, Bytes limit) {
  const Bytes alignment = problem_.alignment_of(b);
  const Bytes top = limit - problem_.size[b];
  if (top < 0) return kNoOffset;
  gather(b);
  Bytes best = kNoOffset;
  Bytes best_room = std::numeric_limits<Bytes>::max();
  Bytes offset = settle(0, alignment, top);
  while (offset != kNoOffset) {
    // Each cursor stands at its first interval above; the buffer could rise to the nearest.
    const Cursor* ceiling = nullptr;
    Bytes room = std::numeric_limits<Bytes>::max();
    for (const Cursor& c : cursors_) {
      if (c.at == c.end || c.at->lower - c.upper - offset >= room) continue;
      room = c.at->lower - c.upper - offset;
      ceiling = &c;
    }
    steps_ += static_cast<std::int64_t>(cursors_.size());
    if (ceiling == nullptr) return best == kNoOffset ? offset : best;
    if (room < best_room) {
      best = offset;
      best_room = room;
    }
    if (room == 0) return best;
    offset = align_up(ceiling->at->upper - ceiling->lower, alignment);
    offset = offset > top ? kNoOffset : settle(offset, alignment, top);
  }
  return best;
}

}  // namespace memplan
