#include "memplan/sections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

namespace {

// Spans whose times are not mapped to sections yet, but listed: begin and end of each in turn.
struct Timed {
  std::vector<Span> spans;
  std::vector<Time> times;
};

// The spans of one buffer in order of time: the whole of it between its gaps, the window within
// them. Neighbours that hold the same bytes become one, so that a span always means a change.
class Cutter {
 public:
  explicit Cutter(Timed* timed) : timed_(timed), first_(timed->spans.size()) {}

  void add(Time start, Time end, Bytes lower, Bytes upper) {
    if (start >= end || lower >= upper) return;
    if (timed_->spans.size() > first_ && timed_->times.back() == start) {
      const Span& last = timed_->spans.back();
      if (last.lower == lower && last.upper == upper) {
        timed_->times.back() = end;
        return;
      }
    }
    Span& span = timed_->spans.emplace_back();
    span.lower = lower;
    span.upper = upper;
    timed_->times.push_back(start);
    timed_->times.push_back(end);
  }

 private:
  Timed* timed_;
  std::size_t first_;
};

// Fills `span_begin` of the sections on the way.
Timed cut(const Problem& problem, Sections* sections) {
  Timed timed;
  const std::size_t most = problem.size.size() + 2 * problem.gaps.size();
  timed.spans.reserve(most);
  timed.times.reserve(2 * most);
  sections->span_begin.reserve(problem.size.size() + 1);
  sections->span_begin.push_back(0);
  std::size_t gap = 0;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    Cutter cutter(&timed);
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
    const auto end = static_cast<std::int32_t>(timed.spans.size());
    const bool whole =
        end == begin ||
        (end == begin + 1 && timed.spans[begin].upper - timed.spans[begin].lower == size);
    sections->single_span = sections->single_span && whole;
    sections->span_begin.push_back(end);
  }
  return timed;
}

// Ranks the times; returns the ranks, and in their place the times by rank. Where times are close
// together, as the steps of a program are, every one between them has a rank, so that none is
// sorted.
std::vector<std::int32_t> rank(std::vector<Time>* times) {
  constexpr std::size_t kClose = 2;  // for each time
  std::vector<std::int32_t> ranks(times->size());
  if (times->empty()) return ranks;
  Time least = times->front();
  Time most = least;
  for (const Time time : *times) {
    least = std::min(least, time);
    most = std::max(most, time);
  }
  // No difference of two times is 2^64.
  const std::uint64_t range = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
  std::vector<Time> by_rank;
  if (range < kClose * times->size()) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i] = static_cast<std::int32_t>((*times)[i] - least);
    }
    by_rank.resize(static_cast<std::size_t>(range) + 1);
    std::iota(by_rank.begin(), by_rank.end(), least);
  } else {
    for (const auto& [time, i] :
         ranked(ranks.size(), [times](std::int32_t i) { return (*times)[i]; })) {
      if (by_rank.empty() || by_rank.back() != time) by_rank.push_back(time);
      ranks[i] = static_cast<std::int32_t>(by_rank.size()) - 1;
    }
  }
  *times = std::move(by_rank);
  return ranks;
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
  Timed timed = cut(problem, &sections);
  const std::vector<std::int32_t> ranks = rank(&timed.times);
  std::vector<std::int32_t> begins(timed.times.size(), 0);  // by rank: how many
  std::vector<std::int32_t> ends(begins);
  for (std::size_t i = 0; i < ranks.size(); i += 2) {
    ++begins[ranks[i]];
    ++ends[ranks[i + 1]];
  }

  std::int32_t live = 0;
  std::int32_t fresh = 0;
  Time last_time = 0;
  for (std::size_t r = 0; r < begins.size(); ++r) {
    if (begins[r] == 0 && ends[r] == 0) continue;
    const Time now = timed.times[r];
    const bool keep = contract == Contract::kYes ? fresh > 0 && ends[r] > 0 : live > 0;
    if (keep) {
      sections.start.push_back(last_time);
      sections.end.push_back(now);
      ++sections.count;
      fresh = 0;
    }
    live += begins[r] - ends[r];
    fresh += begins[r];
    begins[r] = sections.count;    // from now on, the first section of what begins here,
    ends[r] = sections.count - 1;  // and the last one of what ends here
    last_time = now;
  }
  for (std::size_t i = 0; i < timed.spans.size(); ++i) {
    timed.spans[i].first = begins[ranks[2 * i]];
    timed.spans[i].last = ends[ranks[2 * i + 1]];
  }
  sections.spans = std::move(timed.spans);
  MEMPLAN_ASSERT(live == 0);
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
