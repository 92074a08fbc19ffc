#include "solve/windows.h"

#include <algorithm>
#include <utility>

#include "solve/part.h"
#include "util/invariants.h"

namespace memplan {

namespace {
constexpr std::size_t kPerRound = 4;
}

Windows::Windows(Incumbent& incumbent)
    : incumbent_(incumbent), loads_(loads(incumbent.sections())) {}

// Takes the longest window from every first section, and only the fuller one of windows that share
// more than half of their sections.
void Windows::cut_up(BufferIdx width) {
  const Sections& sections = incumbent_.sections();
  std::vector<std::int32_t> begins(sections.count + 1, 0), ends(sections.count + 1, 0);
  for (const Span& span : sections.spans) {
    ++begins[span.first];
    ++ends[span.last + 1];
  }
  std::vector<Window> all;
  std::int32_t live = 0;  // spans in first..last
  SectionIdx next = 0;    // behind the last section that is in
  for (SectionIdx first = 0; first < sections.count; ++first) {
    live -= ends[first];
    const SectionIdx before = next;
    while (next < sections.count && (live + begins[next] <= width || next <= first)) {
      live += begins[next++];
    }
    MEMPLAN_ASSERT(live >= 0 && first < next);
    if (next == before && first > 0) continue;  // inside the one before
    all.push_back(
        {first, next - 1, *std::max_element(loads_.begin() + first, loads_.begin() + next)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Window& a, const Window& b) {
    return std::make_pair(a.load, a.last - a.first) > std::make_pair(b.load, b.last - b.first);
  });
  windows_.clear();
  for (const Window& w : all) {
    const bool known = std::any_of(windows_.begin(), windows_.end(), [&w](const Window& other) {
      const SectionIdx shared = std::min(w.last, other.last) - std::max(w.first, other.first) + 1;
      return 2 * shared > w.last - w.first + 1;
    });
    if (!known) windows_.push_back(w);
    if (windows_.size() >= 64 * kPerRound) break;
  }
}

bool Windows::round(BufferIdx width, std::int64_t nodes) {
  if (2 * static_cast<std::size_t>(width) > incumbent_.sections().spans.size()) return false;
  if (width != width_) {
    cut_up(width);
    width_ = width;
    next_ = 0;
  }
  for (std::size_t k = 0; k < kPerRound && next_ < windows_.size(); ++k) {
    if (!incumbent_.is_open()) break;
    solve_window(windows_[next_++], nodes / static_cast<std::int64_t>(kPerRound));
  }
  return true;
}

// Time is counted in sections. A span of a part of its buffer becomes a window in a gap, and the
// time between two spans becomes a gap.
Problem Windows::cut_out(const Window& window, std::vector<BufferIdx>* rows) const {
  const Problem& whole = incumbent_.problem();
  const Sections& sections = incumbent_.sections();
  Problem part;
  for (BufferIdx b = 0; b < whole.count(); ++b) {
    const auto row = static_cast<BufferIdx>(rows->size());
    Time end = 0;  // of the spans so far
    for (auto k = sections.span_begin[b]; k < sections.span_begin[b + 1]; ++k) {
      const Span& span = sections.spans[k];
      if (span.last < window.first || span.first > window.last) continue;
      const Time from = std::max(span.first, window.first);
      const Time to = std::min(span.last, window.last) + 1;
      if (part.count() == row) {
        part.start.push_back(from);
        part.end.push_back(to);
        part.size.push_back(whole.size[b]);
        if (!whole.alignment.empty()) part.alignment.push_back(whole.alignment[b]);
        if (!whole.pin.empty()) part.pin.push_back(whole.pin[b]);
      } else if (end < from) {
        part.gaps.push_back({row, end, from, 0, 0});
      }
      if (span.upper - span.lower < whole.size[b]) {
        part.gaps.push_back({row, from, to, span.lower, span.upper});
      }
      part.end[row] = end = to;
    }
    MEMPLAN_ASSERT(part.start.size() == part.size.size() && part.end.size() == part.size.size());
    if (part.count() > row) rows->push_back(b);
  }
  part.reserved = whole.reserved;
  return part;
}

void Windows::solve_window(const Window& window, std::int64_t nodes) {
  std::vector<BufferIdx> rows;
  Problem part = cut_out(window, &rows);
  learn_from_part(incumbent_, std::move(part), 0, std::move(rows), nodes, "window",
                  "refuted in a stretch of time");
}

}  // namespace memplan
