#include "memplan/bounds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "model/occupancy.h"
#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

namespace {

bool is_pinned(const Problem& problem, BufferIdx b) { return problem.pin_of(b) != kNoOffset; }

// The bytes held in one section at one time are disjoint addresses below the peak.
Bound by_load(const std::vector<Bytes>& load) {
  if (load.empty()) return {0, -1, "load"};
  const auto most = std::max_element(load.begin(), load.end());
  return {*most, static_cast<SectionIdx>(most - load.begin()), "load"};
}

// The offset at lead 0 of every group that a pin of a member fixes.
std::map<std::int32_t, Bytes> pins_of_groups(const Problem& problem) {
  std::map<std::int32_t, Bytes> offsets;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.group_of(b) == kNoGroup || !is_pinned(problem, b)) continue;
    offsets.emplace(problem.group[b], problem.pin[b] - problem.lead[b]);
  }
  return offsets;
}

// Without all buffers but one (with its group), the pins and the reserved ranges, a plan is still a
// plan. So the buffer is not below the lowest offset that is legal for it among those, and the peak
// is not below its end there. For a pinned buffer that is the top of its pin.
Bound by_one_buffer(const Problem& problem, const Sections& sections) {
  Bound bound{0, -1, "buffer"};
  if (!limits_offsets(problem)) {
    for (const Bytes size : problem.size) bound.bytes = std::max(bound.bytes, size);
    return bound;
  }
  Occupancy occupancy(problem, sections);
  const std::map<std::int32_t, Bytes> pinned_groups = pins_of_groups(problem);
  std::set<std::int32_t> placed;  // a pin places all of its group
  bool any_pin = false;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (!is_pinned(problem, b)) continue;
    any_pin = true;
    const bool alone = problem.group_of(b) == kNoGroup;
    if (!alone && !placed.insert(problem.group[b]).second) continue;
    // Where the group has no room, there is no plan, so that any bound holds.
    const Shape shape = occupancy.blocks().shape(b);
    if (problem.pin[b] < shape.below || problem.pin[b] > kMaxBytes - shape.above) continue;
    occupancy.place(b, problem.pin[b]);
  }
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    Bytes offset = 0;
    const auto group = pinned_groups.find(problem.group_of(b));
    if (is_pinned(problem, b)) {
      offset = problem.pin[b];
    } else if (group != pinned_groups.end()) {
      const Bytes lead = problem.lead[b];
      offset =
          std::min(std::min(group->second, kMaxBytes - lead) + lead, kMaxBytes - problem.size[b]);
    } else {
      // Without a place at or below 2^62 there is no plan, so that any bound holds.
      offset = occupancy.first_fit(b, 0, kMaxBytes);
      if (offset == kNoOffset) offset = kMaxBytes - problem.size[b];
    }
    if (offset + problem.size[b] <= bound.bytes) continue;
    bound.bytes = offset + problem.size[b];
    // Where no pin of another buffer and no group decides it, this one needs so much by itself.
    const bool by_itself = is_pinned(problem, b) || (!any_pin && problem.group_of(b) == kNoGroup);
    bound.buffers = by_itself ? std::vector<BufferIdx>{b} : std::vector<BufferIdx>{};
  }
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    MEMPLAN_ASSERT(!is_pinned(problem, b) || problem.pin[b] + problem.size[b] <= bound.bytes);
  }
  return bound;
}

// Disjoint address intervals that are taken, in order.
using Taken = std::map<Bytes, Bytes>;  // lower to upper

// The least height below which `bytes` are in no interval of either kind. Pins do not touch
// reserved ranges, as check() sees to.
Bytes height_around(const Taken& pins, const std::vector<Reserved>& reserved, Bytes bytes) {
  Bytes at = 0;
  auto pin = pins.begin();
  auto range = reserved.begin();
  while (bytes > 0) {
    const bool has_pin = pin != pins.end();
    const bool has_range = range != reserved.end();
    if (!has_pin && !has_range) break;
    const bool pin_next = has_pin && (!has_range || pin->first < range->lower);
    const Bytes lower = pin_next ? pin->first : range->lower;
    const Bytes upper = pin_next ? pin->second : range->upper;
    MEMPLAN_ASSERT(at <= lower && lower < upper);
    if (lower - at >= bytes) break;
    bytes -= lower - at;
    at = upper;
    if (pin_next) {
      ++pin;
    } else {
      ++range;
    }
  }
  return bytes > kMaxBytes - at ? kMaxBytes : at + bytes;
}

// What unpinned buffers hold in a section is disjoint from what pinned ones hold there and from
// the reserved ranges (a window touches one only where its buffer does). So below the peak are at
// least as many addresses free of both as the unpinned hold.
Bound by_load_around_fixed(const Problem& problem, const Sections& sections,
                           const std::vector<Bytes>& load, Bytes known) {
  Bound bound{0, -1, "load around pins and reserved ranges"};
  if (!limits_offsets(problem)) return bound;
  struct Pin {
    SectionIdx first;
    SectionIdx last;
    Bytes lower;
    Bytes upper;
  };
  std::vector<Pin> pins;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (!is_pinned(problem, b)) continue;
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& s = sections.spans[i];
      pins.push_back({s.first, s.last, problem.pin[b] + s.lower, problem.pin[b] + s.upper});
    }
  }
  const auto by_first = ranked(pins.size(), [&pins](std::int32_t i) { return pins[i].first; });
  const auto by_last = ranked(pins.size(), [&pins](std::int32_t i) { return pins[i].last; });
  Bytes reserved = 0;
  for (const Reserved& r : problem.reserved) reserved += r.upper - r.lower;

  Taken taken;
  Bytes pinned = 0;
  auto begins = by_first.begin();
  auto ends = by_last.begin();
  for (SectionIdx s = 0; s < sections.count; ++s) {
    for (; ends != by_last.end() && ends->key < s; ++ends) {
      const Pin& pin = pins[ends->row];
      taken.erase(pin.lower);
      pinned -= pin.upper - pin.lower;
    }
    for (; begins != by_first.end() && begins->key == s; ++begins) {
      const Pin& pin = pins[begins->row];
      taken.emplace(pin.lower, pin.upper);
      pinned += pin.upper - pin.lower;
    }
    // The height is at most the sum of all that is taken, which shows without a walk over the pins
    // that most sections cannot raise the bound.
    if (load[s] <= std::max(known, bound.bytes) - reserved || load[s] == pinned) continue;
    MEMPLAN_ASSERT(0 <= pinned && pinned <= load[s]);
    const Bytes height = height_around(taken, problem.reserved, load[s] - pinned);
    if (height > bound.bytes) {
      bound.bytes = height;
      bound.section = s;
    }
  }
  return bound;
}

// gcd of the alignments of the buffers that are live in a section; 0 for a section in which some
// window does not begin with its buffer.
std::vector<Bytes> common_alignment(const Problem& problem, const Sections& sections) {
  std::vector<Ranked> by_alignment;  // of spans, the coarsest first
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      by_alignment.push_back({sections.spans[i].lower == 0 ? -problem.alignment_of(b) : 0, i});
    }
  }
  sort_ranked(by_alignment.data(), by_alignment.data() + by_alignment.size());
  std::vector<Bytes> common(sections.count, 0);
  std::vector<std::int32_t> live(static_cast<std::size_t>(sections.count) + 1);
  // The alignments come in descending order, so that windows (0) are last and count.
  for (auto next = by_alignment.begin(); next != by_alignment.end();) {
    const Bytes key = next->key;
    std::fill(live.begin(), live.end(), 0);
    for (; next != by_alignment.end() && next->key == key; ++next) {
      ++live[sections.spans[next->row].first];
      --live[sections.spans[next->row].last + 1];
    }
    std::int32_t count = 0;
    for (SectionIdx s = 0; s < sections.count; ++s) {
      count += live[s];
      if (count > 0) common[s] = key == 0 ? 0 : std::gcd(common[s], key);
    }
  }
  return common;
}

// Where all buffers of a section begin at multiples of g, none but itself holds bytes of the
// granules of g bytes that it begins or ends in. The peak is above the granules of all but the
// topmost, and above the bytes of that: the sum of the rounded sizes, less the largest rounding.
Bound by_granules(const std::vector<Span>& by_first, const std::vector<Bytes>& common, Bytes g) {
  Bound bound{0, -1, "load in aligned granules"};
  // This keeps the sums below 2^63; no real alignment is near it.
  if (g > kMaxBytes / static_cast<Bytes>(by_first.size() + 1)) return bound;
  const auto count = static_cast<SectionIdx>(common.size());
  std::vector<Bytes> ending(common.size() + 1, 0);
  std::priority_queue<std::pair<Bytes, SectionIdx>> roundings;  // and the last section of each
  Bytes sum = 0;
  auto span = by_first.begin();
  for (SectionIdx s = 0; s < count; ++s) {
    sum -= ending[s];
    for (; span != by_first.end() && span->first == s; ++span) {
      const Bytes bytes = span->upper - span->lower;
      const Bytes rounding = (g - bytes % g) % g;
      sum += bytes + rounding;
      ending[span->last + 1] += bytes + rounding;
      roundings.emplace(rounding, span->last);
    }
    while (!roundings.empty() && roundings.top().second < s) roundings.pop();
    if (common[s] != g || roundings.empty()) continue;
    MEMPLAN_ASSERT(roundings.top().first < g && sum >= g);
    const Bytes height = sum - roundings.top().first;
    if (height > bound.bytes) {
      bound.bytes = height;
      bound.section = s;
    }
  }
  return bound;
}

Bound by_alignment(const Problem& problem, const Sections& sections) {
  Bound bound;
  if (problem.alignment.empty()) return bound;
  const std::vector<Bytes> common = common_alignment(problem, sections);
  std::vector<Bytes> granules;
  for (const auto& [granule, s] :
       ranked(common.size(), [&common](SectionIdx at) { return common[at]; })) {
    if (granules.empty() || granules.back() != granule) granules.push_back(granule);
  }
  // Each takes a sweep, and more different alignments are not worth the time.
  constexpr std::size_t kMostGranules = 64;
  if (granules.size() > kMostGranules) return bound;
  std::vector<Span> by_first;
  for (const auto& [first, i] : ranked(sections.spans.size(), [&sections](std::int32_t span) {
         return sections.spans[span].first;
       })) {
    by_first.push_back(sections.spans[i]);
  }
  for (const Bytes g : granules) {
    if (g <= 1) continue;
    const Bound found = by_granules(by_first, common, g);
    if (found.bytes > bound.bytes) bound = found;
  }
  return bound;
}

}  // namespace

Bound bound_of_lifetimes(const Problem& problem, const Sections& sections) {
  const std::vector<Bytes> load = loads(sections);
  Bound best = by_load(load);
  const auto consider = [&best](const Bound& bound) {
    if (bound.bytes > best.bytes) best = bound;
  };
  consider(by_one_buffer(problem, sections));
  consider(by_load_around_fixed(problem, sections, load, best.bytes));
  consider(by_alignment(problem, sections));
  // Without either, the bounds of the rules above are sums of sizes already.
  if (!limits_offsets(problem)) return best;
  const Bytes reachable = next_reachable_peak(problem, sections, best.bytes);
  if (reachable > best.bytes) best = {reachable, best.section, "sums of sizes"};
  return best;
}

}  // namespace memplan
