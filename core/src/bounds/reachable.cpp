#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <vector>

#include "memplan/bounds.h"
#include "util/invariants.h"
#include "util/sums.h"

namespace memplan {

namespace {

// Where a stack of buffers can begin, and the sizes it can be made of.
struct Stacks {
  std::vector<Bytes> bases = {0};
  std::map<Bytes, std::int64_t> sizes;  // of unpinned buffers, with how many of each
  Bytes unit = 0;                       // divides all of them
};

// If the unpinned buffers of a best plan are lowered one by one while any can be, the peak does not
// rise, and in the end each rests on address 0, on a reserved range, or on what another buffer
// holds. Where every buffer holds nothing or all of its bytes, it rests on the top of that buffer.
// So below the topmost buffer there is a stack of different buffers on address 0, a pin or a
// reserved range, and the peak is the sum of their sizes and that base. With groups, leads are
// added and subtracted on the way, so that only the unit is known. Returns false where windows or
// alignments break this.
bool find_stacks(const Problem& problem, const Sections& sections, Stacks* stacks) {
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& span = sections.spans[i];
      if (span.upper - span.lower != problem.size[b]) return false;
    }
    if (problem.pin_of(b) != kNoOffset) {
      stacks->bases.push_back(problem.pin[b] + problem.size[b]);
      // The pin may hold up the rest of a group.
      if (!problem.group.empty()) stacks->unit = std::gcd(stacks->unit, problem.pin[b]);
    } else if (problem.size[b] > 0) {
      ++stacks->sizes[problem.size[b]];
    }
  }
  for (const Reserved& r : problem.reserved) stacks->bases.push_back(r.upper);
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.group_of(b) != kNoGroup) stacks->unit = std::gcd(stacks->unit, problem.lead[b]);
  }
  for (const Bytes base : stacks->bases) stacks->unit = std::gcd(stacks->unit, base);
  for (const auto& [size, count] : stacks->sizes) stacks->unit = std::gcd(stacks->unit, size);
  // An alignment that divides every place to rest on never lifts a buffer off it. An empty buffer
  // rests at 0, but in a group it lifts the others with it.
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    const bool moves =
        problem.pin_of(b) == kNoOffset && (problem.size[b] > 0 || problem.group_of(b) != kNoGroup);
    if (moves && stacks->unit % problem.alignment_of(b) != 0) return false;
  }
  return true;
}

// The least sum at or above `at_least` (both in units), or `at_least` where that is out of reach.
Bytes next_sum(const Stacks& stacks, Bytes at_least) {
  constexpr Bytes kMostReachableWords = 20'000'000;  // about as many milliseconds as millions
  // The least sum at or above at_least is below this limit, since its stack without the topmost
  // buffer is below at_least, or is a base.
  Bytes limit = at_least;
  if (!stacks.sizes.empty()) limit += stacks.sizes.rbegin()->first / stacks.unit;
  Bytes shifts = 0;
  for (const auto& [size, count] : stacks.sizes) {
    for (std::int64_t left = count; left > 0; left /= 2) ++shifts;
  }
  if (limit / 64 + 1 > kMostReachableWords / (shifts + 1)) return at_least;

  Sums sums(static_cast<std::size_t>(limit) + 1);
  Bytes least = kMaxBytes;
  for (const Bytes base : stacks.bases) {
    const Bytes units = base / stacks.unit;
    if (units >= at_least) least = std::min(least, units);
    if (units <= limit) sums.insert(static_cast<std::size_t>(units));
  }
  // The `count` buffers of one size are added in lots of 1, 2, 4, ... and the rest, which can make
  // every count.
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

Bytes unit_of_peaks(const Problem& problem, const Sections& sections) {
  Stacks stacks;
  return find_stacks(problem, sections, &stacks) ? std::max<Bytes>(1, stacks.unit) : 1;
}

Bytes next_reachable_peak(const Problem& problem, const Sections& sections, Bytes at_least) {
  Stacks stacks;
  if (at_least <= 0 || at_least > kMaxBytes) return at_least;
  if (!find_stacks(problem, sections, &stacks) || stacks.unit == 0) return at_least;
  const Bytes units = (at_least - 1) / stacks.unit + 1;
  const bool sums = problem.group.empty() && at_least <= kMaxBytes / 2;
  MEMPLAN_ASSERT(!sums || next_sum(stacks, units) >= units);
  // Above 2^62 there is no peak, so that it is no matter how far above the bound is.
  return std::min((sums ? next_sum(stacks, units) : units) * stacks.unit, kMaxBytes + 1);
}

}  // namespace memplan
