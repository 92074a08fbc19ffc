#include "model/items.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

// Both roundings alternate between the alignment and the reserved ranges, each of which is only
// ever met once. Neither overflows: offsets stay at or below 2^62, and an alignment is at most
// that, so their sum is below 2^63.
Bytes Items::round_up(Bytes bound, Bytes size_of_item, Bytes alignment_of_item) const {
  MEMPLAN_ASSERT(bound >= 0 && size_of_item >= 0 && alignment_of_item > 0);
  auto range = std::upper_bound(reserved.begin(), reserved.end(), bound,
                                [](Bytes b, const Reserved& r) { return b < r.upper; });
  for (;;) {
    const Bytes over = bound % alignment_of_item;
    if (over != 0) bound += alignment_of_item - over;
    while (range != reserved.end() && range->upper <= bound) ++range;
    MEMPLAN_ASSERT(bound % alignment_of_item == 0);
    // This is written as a difference, since the sum could exceed 2^63 after a great alignment.
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

// Moves a part out of the way of a reserved range, and then checks the others again. This ends,
// since a part meets a range only once, and offsets only rise.
Bytes Items::group_up(ItemIdx i, Bytes bound) const {
  const Bytes room = capacity - size[i];
  for (bool moved = true; moved && bound <= room;) {
    moved = false;
    const Bytes over = (bound + phase[i]) % alignment[i];
    if (over != 0) bound += alignment[i] - over;
    for (const Part* part = first_part(i); part != last_part(i) && bound <= room; ++part) {
      if (part->size == 0) continue;
      MEMPLAN_ASSERT((bound + phase[i]) % alignment[i] == 0 || moved);
      const Bytes at = round_up(bound + part->lead, part->size, 1);
      moved = moved || at > bound + part->lead;
      bound = at - part->lead;
    }
  }
  return bound;
}

Bytes Items::group_down(ItemIdx i, Bytes bound) const {
  for (bool moved = true; moved && bound >= 0;) {
    moved = false;
    bound -= (bound + phase[i]) % alignment[i];
    for (const Part* part = first_part(i); part != last_part(i) && bound >= 0; ++part) {
      if (part->size == 0) continue;
      const Bytes at = round_down(bound + part->lead, part->size, 1);
      moved = moved || at < bound + part->lead;
      bound = at - part->lead;
    }
  }
  return std::max<Bytes>(bound, -1);
}

namespace {

// Makes the items of a problem, one after the other.
class ItemMaker {
 public:
  ItemMaker(const Problem& problem, const Sections& sections, Items* items)
      : problem_(problem), sections_(sections), items_(*items) {}

  void run();

 private:
  struct Reach {
    Bytes earliest = 0;
    Bytes latest = -1;
  };

  void add(const BufferIdx* begin, const BufferIdx* end);
  void add_parts(const BufferIdx* begin, const BufferIdx* end);
  bool measure();
  Reach reach_of_buffer(BufferIdx b) const;
  Reach reach_of_group() const;
  bool collides() const;
  bool meet(const Part& a, const Part& b) const;
  void drop();
  void bar();

  const Problem& problem_;
  const Sections& sections_;
  Items& items_;
};

void ItemMaker::run() {
  std::vector<std::vector<Ranked>> groups;
  std::map<std::int32_t, std::size_t> index;
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    const std::int32_t group = problem_.group_of(b);
    if (group == kNoGroup) continue;
    const std::size_t at = index.emplace(group, groups.size()).first->second;
    if (at == groups.size()) groups.emplace_back();
    groups[at].push_back({problem_.lead[b], b});
  }
  std::size_t next = 0;  // groups come in the order of their first rows
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    if (problem_.group_of(b) == kNoGroup) {
      add(&b, &b + 1);
    } else if (next < groups.size() && groups[next].front().row == b) {
      std::vector<Ranked>& by_lead = groups[next++];
      sort_ranked(by_lead.data(), by_lead.data() + by_lead.size());
      std::vector<BufferIdx> members;
      for (const Ranked& member : by_lead) members.push_back(member.row);
      add(members.data(), members.data() + members.size());
    }
  }
  if (!problem_.conflicts.empty()) bar();
}

// Adds an item, if it ever holds anything or has listed conflicts.
void ItemMaker::add(const BufferIdx* begin, const BufferIdx* end) {
  add_parts(begin, end);
  const ItemIdx i = items_.count() - 1;
  if (!measure()) {
    if (items_.misfits.empty()) items_.misfits.assign(begin, end);
    drop();
    return;
  }
  bool matters = items_.begin(i) != items_.end(i);
  for (const Part* part = items_.first_part(i); part != items_.last_part(i); ++part) {
    const BufferIdx b = part->buffer;
    items_.offsets[b] = items_.earliest[i] + part->lead;
    matters =
        matters || (part->size > 0 && problem_.conflicts.first(b) != problem_.conflicts.last(b));
  }
  if (!matters) drop();
}

void ItemMaker::add_parts(const BufferIdx* begin, const BufferIdx* end) {
  const auto item = items_.count();
  const Bytes origin = end - begin > 1 ? problem_.lead[*begin] : 0;
  Bytes strictest = 1, phase = 0, top = 0;
  std::int32_t spans = 0;
  for (const BufferIdx* b = begin; b != end; ++b) {
    Part part{*b, item, end - begin > 1 ? problem_.lead[*b] - origin : 0, problem_.size[*b], 0, 0};
    part.span_begin = spans;
    for (auto k = sections_.span_begin[*b]; k < sections_.span_begin[*b + 1]; ++k, ++spans) {
      const Span& span = sections_.spans[k];
      items_.windowed = items_.windowed || span.upper - span.lower < part.size;
      items_.spans.push_back(
          {span.first, span.last, span.lower + part.lead, span.upper + part.lead});
    }
    part.span_end = spans;
    items_.parts.push_back(part);
    // This is written so that the sum cannot exceed 2^63.
    top = part.size > kMaxBytes - part.lead ? kMaxBytes + 1 : std::max(top, part.lead + part.size);
    if (problem_.alignment_of(*b) < strictest) continue;
    strictest = problem_.alignment_of(*b);
    phase = part.lead % strictest;
  }
  items_.buffer.push_back(*begin);
  items_.size.push_back(top);
  items_.alignment.push_back(strictest);
  items_.phase.push_back(phase);
  items_.earliest.push_back(0);
  items_.latest.push_back(-1);
  items_.span_begin.push_back(static_cast<std::int32_t>(items_.spans.size()));
  items_.part_begin.push_back(static_cast<std::int32_t>(items_.parts.size()));
  items_.grouped = items_.grouped || end - begin > 1;
}

// Finds the legal offsets of the last item. False if there are none.
bool ItemMaker::measure() {
  const ItemIdx i = items_.count() - 1;
  if (items_.size[i] > items_.capacity) return false;
  const Reach reach =
      items_.is_group(i) ? reach_of_group() : reach_of_buffer(items_.first_part(i)->buffer);
  if (reach.earliest > items_.capacity - items_.size[i] || reach.latest < reach.earliest) {
    return false;
  }
  items_.earliest[i] = reach.earliest;
  items_.latest[i] = reach.latest;
  return true;
}

ItemMaker::Reach ItemMaker::reach_of_buffer(BufferIdx b) const {
  const Bytes pin = problem_.pin_of(b);
  if (pin != kNoOffset) return {pin, pin};
  const Bytes size = problem_.size[b], alignment = problem_.alignment_of(b);
  if (size == 0) return {0, 0};  // nothing bars it: no reserved range, no neighbour
  return {items_.round_up(0, size, alignment),
          items_.round_down(items_.capacity - size, size, alignment)};
}

// The pin of one member fixes all of them, and may be illegal for some.
ItemMaker::Reach ItemMaker::reach_of_group() const {
  const ItemIdx i = items_.count() - 1;
  if (collides()) return {};
  const Reach reach{items_.group_up(i, 0), items_.group_down(i, items_.capacity - items_.size[i])};
  for (const Part* part = items_.first_part(i); part != items_.last_part(i); ++part) {
    if (problem_.pin_of(part->buffer) == kNoOffset) continue;
    const Bytes at = problem_.pin[part->buffer] - part->lead;
    if (at < 0 || at > items_.capacity - items_.size[i] || items_.group_up(i, at) != at) return {};
    return {at, at};
  }
  return reach;
}

// Whether members of the group conflict where they lie, which is possible where a caller gave the
// leads.
bool ItemMaker::collides() const {
  const ItemIdx i = items_.count() - 1;
  for (const Part* a = items_.first_part(i); a != items_.last_part(i); ++a) {
    for (const Part* b = a + 1; b != items_.last_part(i) && b->lead < a->lead + a->size; ++b) {
      if (meet(*a, *b)) return true;
    }
  }
  return false;
}

bool ItemMaker::meet(const Part& a, const Part& b) const {
  const Conflicts& listed = problem_.conflicts;
  if (std::binary_search(listed.first(a.buffer), listed.last(a.buffer), b.buffer) && b.size > 0) {
    return true;
  }
  const Span* const spans = items_.begin(a.item);
  return std::any_of(spans + a.span_begin, spans + a.span_end, [&](const Span& x) {
    return std::any_of(spans + b.span_begin, spans + b.span_end, [&](const Span& y) {
      return x.first <= y.last && y.first <= x.last && x.lower < y.upper && y.lower < x.upper;
    });
  });
}

// Removes the last item.
void ItemMaker::drop() {
  items_.span_begin.pop_back();
  items_.part_begin.pop_back();
  items_.spans.resize(items_.span_begin.back());
  items_.parts.resize(items_.part_begin.back());
  items_.buffer.pop_back();
  for (auto* column :
       {&items_.size, &items_.alignment, &items_.phase, &items_.earliest, &items_.latest}) {
    column->pop_back();
  }
}

// Adds the listed conflicts, between parts. Those within a group have been checked.
void ItemMaker::bar() {
  std::vector<std::int32_t> part_of(problem_.size.size(), -1);
  for (std::size_t p = 0; p < items_.parts.size(); ++p) {
    if (items_.parts[p].size > 0) part_of[items_.parts[p].buffer] = static_cast<std::int32_t>(p);
  }
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    if (part_of[b] < 0) continue;
    const BufferIdx* const last = problem_.conflicts.last(b);
    for (const BufferIdx* other = std::upper_bound(problem_.conflicts.first(b), last, b);
         other != last; ++other) {
      const std::int32_t p = part_of[b], q = part_of[*other];
      if (q >= 0 && items_.parts[p].item != items_.parts[q].item) items_.barred.emplace_back(p, q);
    }
  }
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
  MEMPLAN_ASSERT(sections.span_begin.size() == problem.size.size() + 1 && capacity <= kMaxBytes);
  ItemMaker(problem, sections, &items).run();
  MEMPLAN_ASSERT(check_invariants(items));
  return items;
}

bool check_invariants(const Items& items) {
  const auto n = static_cast<std::size_t>(items.count());
  for (const auto* column : {&items.alignment, &items.phase, &items.earliest, &items.latest}) {
    MEMPLAN_ASSERT(column->size() == n);
  }
  MEMPLAN_ASSERT(items.buffer.size() == n && items.span_begin.size() == n + 1);
  MEMPLAN_ASSERT(items.part_begin.size() == n + 1);
  MEMPLAN_ASSERT(items.span_begin.back() == static_cast<std::int32_t>(items.spans.size()));
  MEMPLAN_ASSERT(items.part_begin.back() == static_cast<std::int32_t>(items.parts.size()));
  Bytes free_from = 0;  // reserved ranges rise and do not overlap
  for (const Reserved& r : items.reserved) {
    MEMPLAN_ASSERT(free_from <= r.lower && r.lower < r.upper && r.upper <= items.capacity);
    free_from = r.upper;
  }
  for (ItemIdx i = 0; i < items.count(); ++i) {
    MEMPLAN_ASSERT(0 <= items.earliest[i] && items.earliest[i] <= items.latest[i]);
    MEMPLAN_ASSERT(items.latest[i] <= items.capacity - items.size[i]);
    MEMPLAN_ASSERT(items.alignment[i] > 0 && 0 <= items.phase[i]);
    MEMPLAN_ASSERT((items.earliest[i] + items.phase[i]) % items.alignment[i] == 0);
    MEMPLAN_ASSERT((items.latest[i] + items.phase[i]) % items.alignment[i] == 0);
    for (const Span* span = items.begin(i); span != items.end(i); ++span) {
      MEMPLAN_ASSERT(0 <= span->first && span->first <= span->last);
      MEMPLAN_ASSERT(span->last < items.section_count);
      MEMPLAN_ASSERT(0 <= span->lower && span->lower < span->upper && span->upper <= items.size[i]);
    }
    MEMPLAN_ASSERT(items.first_part(i)->buffer == items.buffer[i] &&
                   items.first_part(i)->lead == 0);
    std::int32_t spans = 0;
    for (const Part* part = items.first_part(i); part != items.last_part(i); ++part) {
      MEMPLAN_ASSERT(part->item == i && part->span_begin == spans && part->span_end >= spans);
      MEMPLAN_ASSERT(part == items.first_part(i) || part[-1].lead <= part->lead);
      MEMPLAN_ASSERT(part->size <= items.size[i] - part->lead);
      spans = part->span_end;
    }
    MEMPLAN_ASSERT(spans == items.end(i) - items.begin(i));
  }
  for (const auto& [p, q] : items.barred) {
    MEMPLAN_ASSERT(items.parts[p].item != items.parts[q].item);
    MEMPLAN_ASSERT(items.parts[p].size > 0 && items.parts[q].size > 0);
  }
  return true;
}

bool is_plan(const Items& items, const std::vector<Bytes>& offsets) {
  constexpr ItemIdx kMany = 1024;
  for (ItemIdx i = 0; i < items.count(); ++i) {
    MEMPLAN_ASSERT(items.earliest[i] <= offsets[i] && offsets[i] <= items.latest[i]);
    MEMPLAN_ASSERT(items.legal_above(i, offsets[i]) == offsets[i]);
  }
  const auto apart = [](Bytes a, Bytes a_end, Bytes b, Bytes b_end) {
    return a_end <= b || b_end <= a;
  };
  for (ItemIdx i = 0; i < items.count() && items.count() <= kMany; ++i) {
    for (ItemIdx k = 0; k < i; ++k) {
      for (const Span* s = items.begin(i); s != items.end(i); ++s) {
        for (const Span* t = items.begin(k); t != items.end(k); ++t) {
          MEMPLAN_ASSERT(s->last < t->first || t->last < s->first ||
                         apart(offsets[i] + s->lower, offsets[i] + s->upper, offsets[k] + t->lower,
                               offsets[k] + t->upper));
        }
      }
    }
  }
  for (const auto& [p, q] : items.barred) {
    const Part& a = items.parts[p];
    const Part& b = items.parts[q];
    const Bytes at = offsets[a.item] + a.lead, other = offsets[b.item] + b.lead;
    MEMPLAN_ASSERT(apart(at, at + a.size, other, other + b.size));
  }
  return true;
}

Plan plan_of(const Problem& problem, const Items& items, const std::vector<Bytes>& offsets,
             const char* note) {
  MEMPLAN_ASSERT(is_plan(items, offsets));
  Plan plan;
  plan.status = Status::kFits;
  plan.offsets = items.offsets;
  for (const Part& part : items.parts) plan.offsets[part.buffer] = offsets[part.item] + part.lead;
  plan.peak = peak_of(problem, plan.offsets);
  MEMPLAN_ASSERT(plan.peak <= items.capacity);
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
    MEMPLAN_ASSERT(sum >= 0 && sum <= kMaxBytes);
    if (items.highest_floor(sum) < 0) return s;
  }
  return -1;
}

std::vector<BufferIdx> buffers_in_section(const Items& items, SectionIdx section) {
  std::vector<BufferIdx> buffers;
  for (const Part& part : items.parts) {
    const Span* const spans = items.begin(part.item);
    const bool live = std::any_of(
        spans + part.span_begin, spans + part.span_end,
        [section](const Span& span) { return span.first <= section && section <= span.last; });
    if (live) buffers.push_back(part.buffer);
  }
  std::sort(buffers.begin(), buffers.end());
  return buffers;
}

std::vector<BufferIdx> buffers_of(const Items& items, const std::vector<ItemIdx>& chosen) {
  std::vector<BufferIdx> buffers;
  for (const ItemIdx i : chosen) {
    for (const Part* part = items.first_part(i); part != items.last_part(i); ++part) {
      buffers.push_back(part->buffer);
    }
  }
  std::sort(buffers.begin(), buffers.end());
  return buffers;
}

}  // namespace memplan
