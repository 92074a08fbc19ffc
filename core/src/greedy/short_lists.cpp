#include "greedy/short_lists.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/blocks.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// With more strips in the mean span, trees are faster.
constexpr double kMostStrips = 16;
// The buffers in a strip that cost as much as its other lists (measured).
constexpr double kBuffersPerStrip = 32;

// What a placement counts as, so that passes cost about as many steps as with the tree (measured).
constexpr std::int64_t kStepsPerPlacement = 80;

// Of so many buffers, the lists no longer fit into the cache of a core (measured).
constexpr std::size_t kFetchAhead = 20'000;
// Placements between two steps of fetching.
constexpr std::size_t kAhead = 4;

double mean_length(const Sections& sections) {
  std::int64_t total = 0;
  for (const Span& span : sections.spans) total += span.last - span.first + 1;
  return static_cast<double>(total) / static_cast<double>(sections.spans.size());
}

// With longer strips a span reads fewer lists, and more buffers of those that begin or end where it
// does. Both cost the same where the square of the length is near this one.
int shift_for(const Sections& sections) {
  const double density = static_cast<double>(sections.spans.size()) / sections.count;
  const double square = kBuffersPerStrip * mean_length(sections) / density;
  int shift = 0;
  while (std::ldexp(1, 2 * shift + 1) < square) ++shift;
  return shift;
}

}  // namespace

bool ShortLists::suits(const Problem& problem, const Sections& sections) {
  if (!sections.single_span || has_relations(problem) || sections.spans.empty()) return false;
  return mean_length(sections) <= std::ldexp(kMostStrips, shift_for(sections));
}

ShortLists::ShortLists(const Problem& problem, const Sections& sections, Stopper& stopper)
    : problem_(problem),
      sections_(sections),
      stopper_(stopper),
      shift_(shift_for(sections)),
      part_begin_(strip_of(sections.count - 1) + 2, 0),
      part_size_(part_begin_.size() - 1, 0),
      full_(part_size_.size()),
      any_(part_size_.size()) {
  MEMPLAN_ASSERT(suits(problem, sections));
  for (const Span& span : sections.spans) {
    const std::size_t first = strip_of(span.first);
    const std::size_t last = strip_of(span.last);
    if (!covers(span, first)) ++part_begin_[first + 1];
    if (last != first && !covers(span, last)) ++part_begin_[last + 1];
  }
  std::partial_sum(part_begin_.begin(), part_begin_.end(), part_begin_.begin());
  parts_.resize(part_begin_.back());
  for (const Reserved& r : problem.reserved) reserved_.push_back({r.lower, r.upper});
}

void ShortLists::clear() {
  std::fill(part_size_.begin(), part_size_.end(), 0);
  full_.clear();
  any_.clear();
}

bool ShortLists::in_budget(const Limits& limits, const Draft& draft) {
  return draft.nodes < limits.nodes && draft.steps < limits.steps && !stopper_.expired();
}

const Span* ShortLists::span_of(BufferIdx b) const {
  const auto at = sections_.span_begin[b];
  return at == sections_.span_begin[b + 1] ? nullptr : &sections_.spans[at];
}

// Of many buffers, a pass waits for memory most of its time. So it fetches early what leads to the
// lists of the buffers that come next, step by step: the buffer, its span, where the lists lie, and
// their first intervals.
void ShortLists::fetch_ahead(const std::vector<BufferIdx>& order, std::size_t at) const {
  if (order.size() < kFetchAhead || at + 4 * kAhead >= order.size()) return;
  const BufferIdx fourth = order[at + 4 * kAhead];
  fetch(&sections_.span_begin[fourth]);
  fetch(&problem_.size[fourth]);
  // The last buffer may hold nothing, and has its span beyond the end.
  fetch(sections_.spans.data() + sections_.span_begin[order[at + 3 * kAhead]]);
  if (const Span* const span = span_of(order[at + 2 * kAhead])) {
    const std::size_t last = strip_of(span->last);
    for (std::size_t s = strip_of(span->first); s <= last; ++s) {
      any_.fetch_place(s);
      full_.fetch_place(s);
    }
    fetch(&part_begin_[last]);
    fetch(&part_size_[last]);
  }
  if (const Span* const span = span_of(order[at + kAhead])) {
    const std::size_t first = strip_of(span->first), last = strip_of(span->last);
    for (std::size_t s = first; s <= last; ++s) {
      any_.fetch_intervals(s);
      full_.fetch_intervals(s);
    }
    fetch(parts_.data() + part_begin_[first]);
    fetch(parts_.data() + part_begin_[last]);
  }
}

// What a list has been read past is below the offset or at another time, so each is read once. Most
// lists are read to their end at once; the others are read on whenever the offset has been raised.
Bytes ShortLists::lowest_place(BufferIdx b, Bytes top) {
  const Bytes size = problem_.size[b];
  const Bytes alignment = problem_.alignment_of(b);
  Bytes offset = 0;
  if (offset > top) return kNoOffset;
  if (size == 0) return offset;
  const auto raise_to = [&](Bytes upper) {
    if (upper > top) return false;
    offset = align_up(upper, alignment);
    return offset <= top;
  };
  const auto read = [&](Cursor* c) {
    for (; c->at != c->end && c->at->lower < offset + size; ++c->at) {
      if (c->at->upper > offset && !raise_to(c->at->upper)) return false;
    }
    return true;
  };
  cursors_.clear();
  const auto look_at = [&](const Interval* begin, const Interval* end) {
    Cursor c{begin, end};
    if (!read(&c)) return false;
    if (c.at != c.end) cursors_.push_back(c);
    return true;
  };
  if (!look_at(reserved_.data(), reserved_.data() + reserved_.size())) return kNoOffset;
  const Span* const span = span_of(b);
  if (span == nullptr) return offset;
  const auto read_part = [&](PartCursor* c) {
    for (; c->at != c->end && c->at->lower < offset + size; ++c->at) {
      // There is no branch for each condition, as either outcome is likely.
      const bool meets = (c->at->first <= span->last) & (c->at->last >= span->first);
      const bool bars = meets & (c->at->upper > offset);
      if (bars && !raise_to(c->at->upper)) return false;
    }
    return true;
  };
  PartCursor parts[2];  // of the strips in which it begins and ends
  PartCursor* parts_end = parts;
  const std::size_t last = strip_of(span->last);
  for (std::size_t s = strip_of(span->first); s <= last; ++s) {
    const bool whole = covers(*span, s);
    const IntervalLists& lists = whole ? any_ : full_;
    looks_ += lists.end(s) - lists.begin(s);
    if (!look_at(lists.begin(s), lists.end(s))) return kNoOffset;
    if (!whole) looks_ += part_size_[s];
    if (!whole) *parts_end++ = {part(s), part(s) + part_size_[s]};
  }
  for (Bytes before = -1; before != offset;) {
    before = offset;
    for (PartCursor* c = parts; c != parts_end; ++c) {
      if (!read_part(c)) return kNoOffset;
    }
    for (Cursor& c : cursors_) {
      if (!read(&c)) return kNoOffset;
    }
  }
  return offset;
}

void ShortLists::put_part(std::size_t strip, const Held& held) {
  Held* const begin = part(strip);
  Held* at = begin + part_size_[strip]++;
  MEMPLAN_ASSERT(at < part(strip + 1));
  for (; at > begin && at[-1].lower > held.lower; --at) *at = at[-1];
  *at = held;
}

void ShortLists::put(BufferIdx b, Bytes offset, Draft* draft) {
  draft->offsets[b] = offset;
  draft->peak = std::max(draft->peak, offset + problem_.size[b]);
  draft->steps = ++draft->nodes;
  const Span* const span = span_of(b);
  if (span == nullptr) return;
  const Interval held{offset, offset + problem_.size[b]};
  const std::size_t last = strip_of(span->last);
  for (std::size_t s = strip_of(span->first); s <= last; ++s) {
    any_.add(s, held);
    if (covers(*span, s)) {
      full_.add(s, held);
    } else {
      put_part(s, {held.lower, held.upper, span->first, span->last});
    }
  }
}

Draft ShortLists::in_order(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  draft.offsets.assign(problem_.size.size(), kNoOffset);
  clear();
  if (!problem_.pin.empty()) {
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      const Bytes pin = problem_.pin[b];
      if (pin == kNoOffset) continue;
      if (pin > limits.bytes - problem_.size[b] || !in_budget(limits, draft)) return draft;
      put(b, pin, &draft);
    }
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const BufferIdx b = order[at];
    fetch_ahead(order, at);
    if (draft.offsets[b] != kNoOffset) continue;
    if (!in_budget(limits, draft)) return draft;
    const Bytes offset = lowest_place(b, limits.bytes - problem_.size[b]);
    if (offset == kNoOffset) {
      draft.stuck = b;
      return draft;
    }
    put(b, offset, &draft);
  }
  MEMPLAN_ASSERT(draft.nodes == problem_.count() && draft.peak <= limits.bytes);
  MEMPLAN_ASSERT(check_invariants());
  draft.complete = true;
  return draft;
}

Packing ShortLists::below(Bytes target, const std::vector<BufferIdx>& order,
                          const std::vector<Bytes>& fixed, const Limits& limits) {
  Packing packing;
  packing.offsets.assign(problem_.size.size(), kNoOffset);
  clear();
  looks_ = 0;
  const auto may_go_on = [&] {
    return packing.nodes < limits.nodes && looks_ < limits.steps && !stopper_.expired();
  };
  const auto settle = [&](BufferIdx b, Bytes offset) {
    put(b, offset, &packing);
    looks_ += kStepsPerPlacement;
    packing.steps = looks_;
  };
  for (const std::vector<Bytes>* places : {&problem_.pin, &fixed}) {
    for (std::size_t i = 0; i < places->size(); ++i) {
      const auto b = static_cast<BufferIdx>(i);
      const Bytes offset = (*places)[i];
      if (offset == kNoOffset || packing.offsets[b] != kNoOffset) continue;
      if (offset > limits.bytes - problem_.size[b] || !may_go_on()) return packing;
      settle(b, offset);
    }
  }
  std::size_t at = 0;
  place_or_reject(order, target, limits.bytes, &packing, [&](BufferIdx b, Bytes bytes, bool again) {
    if (!may_go_on()) return Attempt::kStopped;
    if (!again) {
      while (order[at] != b) ++at;
      fetch_ahead(order, at);
    }
    const Bytes offset = lowest_place(b, bytes - problem_.size[b]);
    if (offset == kNoOffset) return Attempt::kRejected;
    settle(b, offset);
    return Attempt::kPlaced;
  });
  MEMPLAN_ASSERT(check_invariants());
  MEMPLAN_ASSERT(!packing.complete ||
                 (packing.nodes == problem_.count() && packing.peak <= limits.bytes));
  return packing;
}

bool ShortLists::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(full_.check_invariants() && any_.check_invariants());
  for (std::size_t s = 0; s < part_size_.size(); ++s) {
    const Held* const begin = parts_.data() + part_begin_[s];
    const Held* const end = begin + part_size_[s];
    MEMPLAN_ASSERT(part_begin_[s] + part_size_[s] <= part_begin_[s + 1]);
    for (const Interval* i = full_.begin(s); i != full_.end(s); ++i) {
      MEMPLAN_ASSERT(any_.covers(s, *i));
    }
    for (const Held* at = begin; at != end; ++at) {
      MEMPLAN_ASSERT(any_.covers(s, {at->lower, at->upper}));
      MEMPLAN_ASSERT(at == begin || at[-1].lower <= at->lower);
      for (const Held* below = begin; below != at; ++below) {
        const bool meet = at->first <= below->last && below->first <= at->last;
        MEMPLAN_ASSERT(!meet || below->upper <= at->lower);
      }
    }
  }
  return true;
}

}  // namespace memplan
