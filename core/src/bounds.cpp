#include "memplan/bounds.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "greedy/occupancy.h"

namespace memplan {

namespace {

bool is_pinned(const Problem& problem, BufferIdx b) { return problem.pin_of(b) != kNoOffset; }

// The bytes held in one section at one time are disjoint addresses below the peak.
Bound by_load(const std::vector<Bytes>& load) {
  if (load.empty()) return {0, -1, "load"};
  const auto most = std::max_element(load.begin(), load.end());
  return {*most, static_cast<SectionIdx>(most - load.begin()), "load"};
}

// Take all away but one buffer, the pins and the reserved ranges: what is left of a plan is a
// plan, so the buffer is not below the lowest offset that is legal for it among those, and the
// peak not below its end there. For a pinned buffer that is the top of its pin.
Bound by_one_buffer(const Problem& problem, const Sections& sections) {
  Bound bound{0, -1, "buffer"};
  Occupancy occupancy(problem, sections);
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (is_pinned(problem, b)) occupancy.place(b, problem.pin[b]);
  }
  const bool free = problem.pin.empty() && problem.reserved.empty();
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    Bytes offset = 0;
    if (is_pinned(problem, b)) {
      offset = problem.pin[b];
    } else if (!free) {
      // Nowhere at or below 2^62: no plan at all, of which any bound holds.
      offset = occupancy.first_fit(b, 0, kMaxBytes);
      if (offset == kNoOffset) offset = kMaxBytes - problem.size[b];
    }
    bound.bytes = std::max(bound.bytes, offset + problem.size[b]);
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
  if (problem.pin.empty() && problem.reserved.empty()) return bound;
  struct Pin {
    SectionIdx first;
    SectionIdx last;
    Bytes lower;
    Bytes upper;
  };
  std::vector<Pin> by_first;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (!is_pinned(problem, b)) continue;
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& s = sections.spans[i];
      by_first.push_back({s.first, s.last, problem.pin[b] + s.lower, problem.pin[b] + s.upper});
    }
  }
  std::vector<Pin> by_last = by_first;
  std::sort(by_first.begin(), by_first.end(),
            [](const Pin& x, const Pin& y) { return x.first < y.first; });
  std::sort(by_last.begin(), by_last.end(),
            [](const Pin& x, const Pin& y) { return x.last < y.last; });
  Bytes reserved = 0;
  for (const Reserved& r : problem.reserved) reserved += r.upper - r.lower;

  Taken pins;
  Bytes pinned = 0;
  auto begins = by_first.begin();
  auto ends = by_last.begin();
  for (SectionIdx s = 0; s < sections.count; ++s) {
    for (; ends != by_last.end() && ends->last < s; ++ends) {
      pins.erase(ends->lower);
      pinned -= ends->upper - ends->lower;
    }
    for (; begins != by_first.end() && begins->first == s; ++begins) {
      pins.emplace(begins->lower, begins->upper);
      pinned += begins->upper - begins->lower;
    }
    // The height cannot be more than all that is taken together: most sections are seen to be
    // of no use without a walk over their pins.
    if (load[s] <= std::max(known, bound.bytes) - reserved || load[s] == pinned) continue;
    const Bytes height = height_around(pins, problem.reserved, load[s] - pinned);
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
  std::map<Bytes, std::vector<Span>> by_alignment;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& span = sections.spans[i];
      by_alignment[span.lower == 0 ? problem.alignment_of(b) : 0].push_back(span);
    }
  }
  std::vector<Bytes> common(sections.count, 0);
  std::vector<std::int32_t> live(static_cast<std::size_t>(sections.count) + 1);
  // Downwards, so that windows (0) have the last word.
  for (auto entry = by_alignment.rbegin(); entry != by_alignment.rend(); ++entry) {
    std::fill(live.begin(), live.end(), 0);
    for (const Span& span : entry->second) {
      ++live[span.first];
      --live[span.last + 1];
    }
    std::int32_t count = 0;
    for (SectionIdx s = 0; s < sections.count; ++s) {
      count += live[s];
      if (count > 0) common[s] = entry->first == 0 ? 0 : std::gcd(common[s], entry->first);
    }
  }
  return common;
}

// Where all buffers of a section begin at multiples of g, none but itself holds bytes of the
// granules of g bytes that it begins or ends in. The peak is above the granules of all but the
// topmost, and above the bytes of that: the sum of the rounded sizes, less the largest rounding.
Bound by_granules(const std::vector<Span>& by_first, const std::vector<Bytes>& common, Bytes g) {
  Bound bound{0, -1, "load in aligned granules"};
  // Keeps the sums below 2^63; no real alignment comes near.
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
  std::vector<Bytes> granules = common;
  std::sort(granules.begin(), granules.end());
  granules.erase(std::unique(granules.begin(), granules.end()), granules.end());
  // A sweep for each; sections with ever different alignments are not worth more.
  constexpr std::size_t kMostGranules = 64;
  if (granules.size() > kMostGranules) return bound;
  std::vector<Span> by_first = sections.spans;
  std::sort(by_first.begin(), by_first.end(),
            [](const Span& x, const Span& y) { return x.first < y.first; });
  for (const Bytes g : granules) {
    if (g <= 1) continue;
    const Bound found = by_granules(by_first, common, g);
    if (found.bytes > bound.bytes) bound = found;
  }
  return bound;
}

// Where a stack of buffers can begin, and the sizes it can be made of.
struct Stacks {
  std::vector<Bytes> bases = {0};
  std::map<Bytes, std::int64_t> sizes;  // of unpinned buffers, with how many of each
  Bytes unit = 0;                       // divides all of them
};

// Lower the unpinned buffers of a best plan one by one while any can be lowered: the peak does not
// rise, and in the end each rests on address 0, on a reserved range, or on what another buffer
// holds. Where all hold either nothing or the whole of themselves, that is on its top. Down from
// the topmost, that is a stack of different buffers on address 0, a pin or a reserved range, and
// the peak is a sum of their sizes and that base. False where windows or alignments break this.
bool find_stacks(const Problem& problem, const Sections& sections, Stacks* stacks) {
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& span = sections.spans[i];
      if (span.upper - span.lower != problem.size[b]) return false;
    }
    if (is_pinned(problem, b)) {
      stacks->bases.push_back(problem.pin[b] + problem.size[b]);
    } else if (problem.size[b] > 0) {
      ++stacks->sizes[problem.size[b]];
    }
  }
  for (const Reserved& r : problem.reserved) stacks->bases.push_back(r.upper);
  for (const Bytes base : stacks->bases) stacks->unit = std::gcd(stacks->unit, base);
  for (const auto& [size, count] : stacks->sizes) stacks->unit = std::gcd(stacks->unit, size);
  // An alignment that divides every place to rest on never lifts a buffer off it.
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    const bool moves = !is_pinned(problem, b) && problem.size[b] > 0;
    if (moves && stacks->unit % problem.alignment_of(b) != 0) return false;
  }
  return true;
}

// A set of numbers below a limit, as bits.
class Sums {
 public:
  explicit Sums(std::size_t limit) : words_(limit / 64 + 1, 0) {}

  std::size_t words() const { return words_.size(); }
  bool has(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void insert(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }

  // Adds x + shift for every x of the set. From the top down: words read are not yet written.
  void add_shifted(std::size_t shift) {
    const std::size_t whole = shift / 64;
    const std::size_t bits = shift % 64;
    for (std::size_t i = words_.size(); i-- > whole;) {
      std::uint64_t word = words_[i - whole] << bits;
      if (bits > 0 && i > whole) word |= words_[i - whole - 1] >> (64 - bits);
      words_[i] |= word;
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

// The least sum at or above `at_least` (both in units), or `at_least` where that is out of reach.
Bytes next_sum(const Stacks& stacks, Bytes at_least) {
  constexpr Bytes kMostWords = 20'000'000;  // about as many milliseconds as millions
  // Of the sums at or above, the least is below this: without its topmost buffer, the stack of it
  // is below at_least, or is a base.
  Bytes limit = at_least;
  if (!stacks.sizes.empty()) limit += stacks.sizes.rbegin()->first / stacks.unit;
  Bytes shifts = 0;
  for (const auto& [size, count] : stacks.sizes) {
    for (std::int64_t left = count; left > 0; left /= 2) ++shifts;
  }
  if (limit / 64 + 1 > kMostWords / (shifts + 1)) return at_least;

  Sums sums(static_cast<std::size_t>(limit) + 1);
  Bytes least = kMaxBytes;
  for (const Bytes base : stacks.bases) {
    const Bytes units = base / stacks.unit;
    if (units >= at_least) least = std::min(least, units);
    if (units <= limit) sums.insert(static_cast<std::size_t>(units));
  }
  // `count` buffers of one size as 1, 2, 4, ... of them, and the rest: all counts can be made.
  for (const auto& [size, count] : stacks.sizes) {
    std::int64_t left = count;
    for (std::int64_t part = 1; left > 0; part *= 2) {
      const std::int64_t taken = std::min(part, left);
      left -= taken;
      const Bytes units = size / stacks.unit;
      if (units <= limit / taken) sums.add_shifted(static_cast<std::size_t>(units * taken));
    }
  }
  for (Bytes i = at_least; i <= std::min(limit, least); ++i) {
    if (sums.has(static_cast<std::size_t>(i))) return i;
  }
  return least == kMaxBytes ? at_least : least;
}

}  // namespace

Bytes next_reachable_peak(const Problem& problem, const Sections& sections, Bytes at_least) {
  Stacks stacks;
  if (at_least <= 0 || at_least > kMaxBytes / 2) return at_least;
  if (!find_stacks(problem, sections, &stacks) || stacks.unit == 0) return at_least;
  const Bytes units = (at_least + stacks.unit - 1) / stacks.unit;
  return next_sum(stacks, units) * stacks.unit;
}

Bound lower_bound(const Problem& problem, const Sections& sections) {
  const std::vector<Bytes> load = loads(sections);
  Bound best = by_load(load);
  const auto consider = [&best](const Bound& bound) {
    if (bound.bytes > best.bytes) best = bound;
  };
  consider(by_one_buffer(problem, sections));
  consider(by_load_around_fixed(problem, sections, load, best.bytes));
  consider(by_alignment(problem, sections));
  // Without either, the rules above give sums of sizes already.
  if (problem.pin.empty() && problem.reserved.empty()) return best;
  const Bytes reachable = next_reachable_peak(problem, sections, best.bytes);
  if (reachable > best.bytes) best = {reachable, best.section, "sums of sizes"};
  return best;
}

}  // namespace memplan
