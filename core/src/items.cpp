#include "items.h"

#include <algorithm>
#include <cstddef>

namespace memplan {

// Both roundings alternate between the alignment and the reserved ranges, each of which is only
// ever met once. Neither overflows: offsets stay at or below 2^62, and an alignment is at most
// that, so their sum is below 2^63.
Bytes Items::round_up(Bytes bound, Bytes size_of_item, Bytes alignment_of_item) const {
  auto range = std::upper_bound(reserved.begin(), reserved.end(), bound,
                                [](Bytes b, const Reserved& r) { return b < r.upper; });
  for (;;) {
    const Bytes over = bound % alignment_of_item;
    if (over != 0) bound += alignment_of_item - over;
    while (range != reserved.end() && range->upper <= bound) ++range;
    // Written as a difference: the sum could pass 2^63 after a great alignment.
    if (range == reserved.end() || size_of_item <= range->lower - bound) return bound;
    bound = range->upper;
  }
}

Bytes Items::round_down(Bytes bound, Bytes size_of_item, Bytes alignment_of_item) const {
  auto range = std::lower_bound(reserved.begin(), reserved.end(), bound + size_of_item,
                                [](const Reserved& r, Bytes b) { return r.lower < b; });
  for (;;) {
    if (bound < 0) return -1;
    bound -= bound % alignment_of_item;
    while (range != reserved.begin() && (range - 1)->lower >= bound + size_of_item) --range;
    if (range == reserved.begin() || (range - 1)->upper <= bound) return bound;
    bound = (range - 1)->lower - size_of_item;
  }
}

Bytes Items::highest_floor(Bytes bytes) const {
  Bytes top = capacity;
  for (std::size_t r = reserved.size(); r-- > 0;) {
    if (bytes <= top - reserved[r].upper) break;
    bytes -= top - reserved[r].upper;
    top = reserved[r].lower;
  }
  return std::max<Bytes>(top - bytes, -1);
}

namespace {

void add_buffer(const Problem& problem, const Sections& sections, BufferIdx b, Items* items) {
  const Bytes size = problem.size[b];
  const Bytes alignment = problem.alignment_of(b);
  const Bytes room = items->capacity - size;
  const Bytes pin = problem.pin_of(b);
  Bytes earliest = pin;
  Bytes latest = pin;
  if (pin == kNoOffset && size == 0) {  // nothing bars it: no reserved range, no neighbour
    earliest = latest = 0;
  } else if (pin == kNoOffset && room >= 0) {
    earliest = items->round_up(0, size, alignment);
    latest = items->round_down(room, size, alignment);
  }
  if (room < 0 || earliest > room) {
    if (items->misfit < 0) items->misfit = b;
    return;
  }
  items->offsets[b] = earliest;

  const Span* begin = sections.spans.data() + sections.span_begin[b];
  const Span* end = sections.spans.data() + sections.span_begin[b + 1];
  if (begin == end) return;  // it never holds anything
  items->buffer.push_back(b);
  items->size.push_back(size);
  items->alignment.push_back(alignment);
  items->earliest.push_back(earliest);
  items->latest.push_back(latest);
  for (const Span* span = begin; span != end; ++span) {
    items->spans.push_back(*span);
    items->windowed = items->windowed || span->upper - span->lower < size;
  }
  items->span_begin.push_back(static_cast<std::int32_t>(items->spans.size()));
}

}  // namespace

Items make_items(const Problem& problem, const Sections& sections, Bytes capacity) {
  Items items;
  items.capacity = capacity;
  items.section_count = sections.count;
  for (const Reserved& r : problem.reserved) {
    if (r.lower < capacity) items.reserved.push_back({r.lower, std::min(r.upper, capacity)});
  }
  items.offsets.assign(problem.size.size(), 0);
  for (BufferIdx b = 0; b < problem.count(); ++b) add_buffer(problem, sections, b, &items);
  return items;
}

Plan plan_of(const Problem& problem, const Items& items, const std::vector<Bytes>& offsets,
             const char* note) {
  Plan plan;
  plan.status = Status::kOptimal;
  plan.offsets = items.offsets;
  for (ItemIdx i = 0; i < items.count(); ++i) plan.offsets[items.buffer[i]] = offsets[i];
  plan.peak = peak_of(problem, plan.offsets);
  plan.stats.note = note;
  return plan;
}

Bytes peak_of(const Problem& problem, const std::vector<Bytes>& offsets) {
  Bytes peak = 0;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    peak = std::max(peak, offsets[b] + problem.size[b]);
  }
  return peak;
}

SectionIdx overfull_section(const Items& items) {
  // A running sum of differences; see loads() for why it stays within 2^62.
  std::vector<Bytes> load(static_cast<std::size_t>(items.section_count) + 1, 0);
  for (const Span& span : items.spans) {
    load[span.first] += span.upper - span.lower;
    load[span.last + 1] -= span.upper - span.lower;
  }
  Bytes sum = 0;
  for (SectionIdx s = 0; s < items.section_count; ++s) {
    sum += load[s];
    if (items.highest_floor(sum) < 0) return s;
  }
  return -1;
}

std::vector<BufferIdx> buffers_in_section(const Items& items, SectionIdx section) {
  std::vector<BufferIdx> buffers;
  for (ItemIdx i = 0; i < items.count(); ++i) {
    const bool live = std::any_of(items.begin(i), items.end(i), [section](const Span& span) {
      return span.first <= section && section <= span.last;
    });
    if (live) buffers.push_back(items.buffer[i]);
  }
  return buffers;
}

}  // namespace memplan
