#include "greedy/short_list.h"

#include <algorithm>
#include <limits>

#include "model/blocks.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// With more buffers, trees are faster (measured on networks and training steps).
constexpr BufferIdx kFew = 600;

// A reserved range meets everything, and a buffer that holds nothing meets only that.
constexpr SectionIdx kBeforeAll = std::numeric_limits<SectionIdx>::min();
constexpr SectionIdx kAfterAll = std::numeric_limits<SectionIdx>::max();

}  // namespace

bool ShortList::suits(const Problem& problem, const Sections& sections) {
  return problem.count() <= kFew && sections.single_span && !has_relations(problem);
}

ShortList::ShortList(const Problem& problem, const Sections& sections, Stopper& stopper)
    : problem_(problem), sections_(sections), stopper_(stopper) {
  MEMPLAN_ASSERT(suits(problem, sections));
  held_.reserve(problem.size.size() + problem.reserved.size());
}

// What a buffer would hold at offset 0.
ShortList::Held ShortList::shape(BufferIdx b) const {
  const auto at = sections_.span_begin[b];
  if (at == sections_.span_begin[b + 1]) return {0, problem_.size[b], kAfterAll, kBeforeAll};
  const Span& span = sections_.spans[at];
  return {0, problem_.size[b], span.first, span.last};
}

bool ShortList::in_budget(const Limits& limits, const Draft& draft) {
  return draft.nodes < limits.nodes && draft.steps < limits.steps && !stopper_.expired();
}

// The lowest free offset that is not above `top`, or kNoOffset. What has been passed is below the
// offset or at another time, so the list is read once.
Bytes ShortList::lowest_place(const Held& shape, Bytes alignment, Bytes top) const {
  const Bytes size = shape.upper;
  Bytes offset = 0;
  if (offset > top) return kNoOffset;
  if (size == 0) return offset;
  for (const Held& held : held_) {
    if (held.lower >= offset + size) break;
    // There is no branch for each condition, as either outcome is likely.
    const bool meets = (held.first <= shape.last) & (held.last >= shape.first);
    const bool bars = meets & (held.upper > offset);
    if (!bars) continue;
    if (held.upper > top) return kNoOffset;
    offset = alignment == 1 ? held.upper : align_up(held.upper, alignment);
    if (offset > top) return kNoOffset;
  }
  return offset;
}

void ShortList::put(BufferIdx b, Held shape, Bytes offset, Draft* draft) {
  draft->offsets[b] = offset;
  draft->peak = std::max(draft->peak, offset + problem_.size[b]);
  draft->steps = ++draft->nodes;
  if (problem_.size[b] == 0 || shape.first > shape.last) return;
  shape.lower = offset;
  shape.upper += offset;
  const auto above = [](Bytes lower, const Held& held) { return lower < held.lower; };
  held_.insert(std::upper_bound(held_.begin(), held_.end(), offset, above), shape);
}

Draft ShortList::in_order(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  draft.offsets.assign(problem_.size.size(), kNoOffset);
  held_.clear();
  for (const Reserved& r : problem_.reserved) {
    held_.push_back({r.lower, r.upper, kBeforeAll, kAfterAll});
  }
  if (!problem_.pin.empty()) {
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      const Bytes pin = problem_.pin[b];
      if (pin == kNoOffset) continue;
      if (pin > limits.bytes - problem_.size[b] || !in_budget(limits, draft)) return draft;
      put(b, shape(b), pin, &draft);
    }
  }
  for (const BufferIdx b : order) {
    if (draft.offsets[b] != kNoOffset) continue;
    if (!in_budget(limits, draft)) return draft;
    const Held wanted = shape(b);
    const Bytes top = limits.bytes - problem_.size[b];
    const Bytes offset = lowest_place(wanted, problem_.alignment_of(b), top);
    if (offset == kNoOffset) {
      draft.stuck = b;
      return draft;
    }
    put(b, wanted, offset, &draft);
  }
  MEMPLAN_ASSERT(draft.nodes == problem_.count() && draft.peak <= limits.bytes);
  MEMPLAN_ASSERT(check_invariants());
  draft.complete = true;
  return draft;
}

bool ShortList::check_invariants() const {
  if (!kAssertions) return true;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    MEMPLAN_ASSERT(held_[i].lower < held_[i].upper);
    MEMPLAN_ASSERT(i == 0 || held_[i - 1].lower <= held_[i].lower);
    for (std::size_t j = 0; j < i; ++j) {
      const bool meet = held_[i].first <= held_[j].last && held_[j].first <= held_[i].last;
      MEMPLAN_ASSERT(!meet || held_[j].upper <= held_[i].lower);
    }
  }
  return true;
}

}  // namespace memplan
