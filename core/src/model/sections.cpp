#include "memplan/sections.h"

#include <cstddef>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

namespace {

// A span before its times are mapped to sections.
struct TimedSpan {
  Time start;
  Time end;
  Bytes lower;
  Bytes upper;
};

// The spans of one buffer in order of time: the whole of it between its gaps, the window within
// them. Neighbours that hold the same bytes become one, so that a span always means a change.
class Cutter {
 public:
  explicit Cutter(std::vector<TimedSpan>* spans) : spans_(spans), first_(spans->size()) {}

  void add(Time start, Time end, Bytes lower, Bytes upper) {
    if (start >= end || lower >= upper) return;
    if (spans_->size() > first_) {
      TimedSpan& last = spans_->back();
      if (last.end == start && last.lower == lower && last.upper == upper) {
        last.end = end;
        return;
      }
    }
    spans_->push_back({start, end, lower, upper});
  }

 private:
  std::vector<TimedSpan>* spans_;
  std::size_t first_;
};

// Fills `span_begin` of the sections on the way.
std::vector<TimedSpan> cut(const Problem& problem, Sections* sections) {
  std::vector<TimedSpan> spans;
  spans.reserve(problem.size.size() + 2 * problem.gaps.size());
  sections->span_begin.reserve(problem.size.size() + 1);
  sections->span_begin.push_back(0);
  std::size_t gap = 0;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    Cutter cutter(&spans);
    const Bytes size = problem.size[b];
    Time at = problem.start[b];
    for (; gap < problem.gaps.size() && problem.gaps[gap].buffer == b; ++gap) {
      const Gap& g = problem.gaps[gap];
      cutter.add(at, g.start, 0, size);
      cutter.add(g.start, g.end, g.lower, g.upper);
      at = g.end;
    }
    cutter.add(at, problem.end[b], 0, size);

    const std::int32_t begin = sections->span_begin.back();
    const auto end = static_cast<std::int32_t>(spans.size());
    const bool whole =
        end == begin || (end == begin + 1 && spans[begin].upper - spans[begin].lower == size);
    sections->single_span = sections->single_span && whole;
    sections->span_begin.push_back(end);
  }
  return spans;
}

bool check_invariants(const Sections& sections, Contract contract) {
  std::vector<char> begins(sections.count, 0), ends(sections.count, 0);
  for (const Span& span : sections.spans) {
    MEMPLAN_ASSERT(0 <= span.first && span.first <= span.last && span.last < sections.count);
    MEMPLAN_ASSERT(0 <= span.lower && span.lower < span.upper);
    begins[span.first] = ends[span.last] = 1;
  }
  for (SectionIdx s = 0; s < sections.count; ++s) {
    MEMPLAN_ASSERT(sections.start[s] < sections.end[s]);
    MEMPLAN_ASSERT(s == 0 || sections.end[s - 1] <= sections.start[s]);
    // A section at which nothing begins, or nothing ends, is within a neighbour.
    MEMPLAN_ASSERT(contract == Contract::kNo || (begins[s] != 0 && ends[s] != 0));
  }
  for (std::size_t b = 0; b + 1 < sections.span_begin.size(); ++b) {
    MEMPLAN_ASSERT(sections.span_begin[b] <= sections.span_begin[b + 1]);
    for (auto k = sections.span_begin[b] + 1; k < sections.span_begin[b + 1]; ++k) {
      MEMPLAN_ASSERT(sections.spans[k - 1].last < sections.spans[k].first);
    }
  }
  return true;
}
}  // namespace

// Walks the times at which a span begins or ends. What is live between two of them is a section.
//
// Contraction: let "fresh" count the spans that began since the last section that was kept. A
// section without fresh spans, or at whose end nothing ends, has all its live spans in the kept
// section before it, or in the section after it: every conflict and every load of it is implied
// there. A span always keeps one section: the last before the first end at or after its start.
Sections sweep(const Problem& problem, Contract contract) {
  Sections sections;
  const std::vector<TimedSpan> timed = cut(problem, &sections);
  const std::vector<Ranked> starts =
      ranked(timed.size(), [&timed](std::int32_t i) { return timed[i].start; });
  const std::vector<Ranked> ends =
      ranked(timed.size(), [&timed](std::int32_t i) { return timed[i].end; });

  sections.spans.resize(timed.size());
  std::size_t live = 0;
  std::size_t fresh = 0;
  Time last_time = 0;
  auto start = starts.begin();
  auto end = ends.begin();
  while (end != ends.end()) {
    const bool any_starts = start != starts.end() && start->key <= end->key;
    const Time now = any_starts ? start->key : end->key;
    const bool any_ends = end->key == now;
    const bool keep = contract == Contract::kYes ? fresh > 0 && any_ends : live > 0;
    if (keep) {
      sections.start.push_back(last_time);
      sections.end.push_back(now);
      ++sections.count;
      fresh = 0;
    }
    for (; end != ends.end() && end->key == now; ++end, --live) {
      sections.spans[end->row].last = sections.count - 1;
    }
    for (; start != starts.end() && start->key == now; ++start, ++live, ++fresh) {
      const TimedSpan& t = timed[start->row];
      sections.spans[start->row] = {sections.count, 0, t.lower, t.upper};
    }
    last_time = now;
  }
  MEMPLAN_ASSERT(live == 0 && start == starts.end());
  MEMPLAN_ASSERT(check_invariants(sections, contract));
  return sections;
}

// A running sum of differences. The spans that begin with a section are all live in it, as those
// that ended before it were in the one before, so no difference leaves [-2^62, 2^62].
std::vector<Bytes> loads(const Sections& sections) {
  std::vector<Bytes> load(static_cast<std::size_t>(sections.count) + 1, 0);
  for (const Span& span : sections.spans) {
    load[span.first] += span.upper - span.lower;
    load[span.last + 1] -= span.upper - span.lower;
  }
  for (SectionIdx s = 1; s < sections.count; ++s) load[s] += load[s - 1];
  MEMPLAN_ASSERT(sections.count == 0 || load[sections.count] + load[sections.count - 1] == 0);
  load.pop_back();
  return load;
}

}  // namespace memplan
