#include "large/windows.h"

#include <algorithm>
#include <utility>

#include "large/part.h"
#include "util/invariants.h"

namespace memplan::chain {

namespace {

// Sections on either side of the rejected buffer. The first windows are cheap; the last ones hold
// as much as the search can be expected to place.
constexpr SectionIdx kMargins[] = {0, 1, 2, 4, 8, 16, 32, 64};
constexpr int kRandomWindows = 8;  // for each rejected buffer, of a random size, off its middle
constexpr std::size_t kMostFree = 400;
constexpr std::int64_t kMostLooks = 200'000'000;

// Intervals that touch become one, since each one costs the search time.
std::vector<Reserved> merged(std::vector<Reserved> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Reserved& x, const Reserved& y) { return x.lower < y.lower; });
  std::vector<Reserved> result;
  for (const Reserved& r : ranges) {
    if (!result.empty() && r.lower <= result.back().upper) {
      result.back().upper = std::max(result.back().upper, r.upper);
    } else {
      result.push_back(r);
    }
  }
  return result;
}

}  // namespace

Windows::Windows(const Problem& problem, const Sections& sections, std::uint64_t seed,
                 Stopper& stopper)
    : problem_(problem), sections_(sections), random_(seed), stopper_(stopper) {}

// For each rejected buffer, windows around it are tried, wider and wider, then some at random. What
// lives in a window alone is free there; all else that meets it stays, as a pin or a reserved
// range. So a solution changes nothing outside, and the offsets stay a plan below the target.
bool Windows::insert(Bytes target, std::int64_t node_budget, std::vector<Bytes>* offsets,
                     std::vector<BufferIdx>* rejected) {
  const std::int64_t nodes_at_end =
      node_budget > INT64_MAX - nodes_ ? INT64_MAX : nodes_ + node_budget;
  const auto fits = [&](BufferIdx b) {
    if (sections_.span_begin[b] == sections_.span_begin[b + 1]) return false;
    const auto tries = [&](const Window& window) {
      if (nodes_ >= nodes_at_end || stopper_.look()) return false;
      return try_window(b, window, target, nodes_at_end - nodes_, offsets);
    };
    for (const SectionIdx margin : kMargins) {
      if (tries(around(b, margin))) return true;
    }
    for (int k = 0; k < kRandomWindows; ++k) {
      if (tries(somewhere_around(b, kMargins[1 + random_.below(7)]))) return true;
    }
    return false;
  };
  const auto left = std::remove_if(rejected->begin(), rejected->end(), fits);
  const bool any = left != rejected->end();
  rejected->erase(left, rejected->end());
  return any;
}

Windows::Window Windows::around(BufferIdx b, SectionIdx margin) const {
  const SectionIdx first = sections_.spans[sections_.span_begin[b]].first;
  const SectionIdx last = sections_.spans[sections_.span_begin[b + 1] - 1].last;
  return {first - std::min(first, margin), last + std::min(sections_.count - 1 - last, margin)};
}

Windows::Window Windows::somewhere_around(BufferIdx b, SectionIdx margin) {
  Window window = around(b, 0);
  const auto left =
      static_cast<SectionIdx>(random_.below(2 * static_cast<std::uint64_t>(margin) + 1));
  window.first -= std::min(window.first, left);
  window.last += std::min(sections_.count - 1 - window.last, 2 * margin - left);
  return window;
}

bool Windows::lives_within(BufferIdx b, const Window& window) const {
  return sections_.spans[sections_.span_begin[b]].first >= window.first &&
         sections_.spans[sections_.span_begin[b + 1] - 1].last <= window.last;
}

bool Windows::meets(BufferIdx b, const Window& window) const {
  for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
    const Span& span = sections_.spans[i];
    if (span.first <= window.last && window.first <= span.last) return true;
  }
  return false;
}

bool Windows::spans(BufferIdx b, const Window& window) const {
  if (sections_.span_begin[b + 1] - sections_.span_begin[b] != 1) return false;
  const Span& span = sections_.spans[sections_.span_begin[b]];
  return span.first <= window.first && window.last <= span.last &&
         span.upper - span.lower == problem_.size[b];
}

// Cuts lifetimes down to the window, so that what happens elsewhere costs the search nothing. No
// conflict of a free buffer is lost, since it lives only in sections of the window.
void Windows::clip(const Window& window, Problem* problem) const {
  for (Time& start : problem->start) start = std::max(start, sections_.start[window.first]);
  for (Time& end : problem->end) end = std::min(end, sections_.end[window.last]);
}

bool Windows::try_window(BufferIdx b, const Window& window, Bytes target, std::int64_t node_budget,
                         std::vector<Bytes>* offsets) {
  MEMPLAN_ASSERT((*offsets)[b] == kNoOffset && 0 <= window.first && window.last < sections_.count);
  std::vector<BufferIdx> rows;
  std::vector<Bytes> fixed;
  std::vector<Reserved> reserved = problem_.reserved;
  std::size_t free = 0;
  for (BufferIdx a = 0; a < problem_.count(); ++a) {
    const Bytes offset = (*offsets)[a];
    if (a != b && (offset == kNoOffset || !meets(a, window))) continue;
    const bool movable = problem_.pin_of(a) == kNoOffset;
    if (a == b || (movable && lives_within(a, window))) {
      rows.push_back(a);
      fixed.push_back(kNoOffset);
      if (++free > kMostFree) return false;
    } else if (spans(a, window)) {
      reserved.push_back({offset, offset + problem_.size[a]});
    } else {
      rows.push_back(a);
      fixed.push_back(offset);
    }
  }
  Part part = take_part(problem_, std::move(rows));
  part.problem.reserved = merged(std::move(reserved));
  part.problem.pin = std::move(fixed);
  if (problem_.gaps.empty()) clip(window, &part.problem);
  const std::int64_t nodes = std::min(node_budget, nodes_of_descent(part));
  const Plan plan = fit_part(part, target, {kMostLooks, nodes}, random_.state(), stopper_);
  nodes_ += plan.stats.nodes;
  if (!plan.has_offsets()) return false;
  MEMPLAN_ASSERT(plan.peak <= target && free > 0);
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    const Bytes pin = part.problem.pin[i];
    MEMPLAN_ASSERT(pin == kNoOffset || pin == plan.offsets[i]);  // what reaches beyond stays
    (*offsets)[part.rows[i]] = plan.offsets[i];
  }
  return true;
}

}  // namespace memplan::chain
