// The question to a solver: buffers with lifetimes and sizes, and the constraints on their offsets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memplan/types.h"

namespace memplan {

// While `start <= t < end`, the buffer holds only the window [lower, upper) of itself, counted
// from its own offset; lower == upper means that it holds nothing.
struct Gap {
  BufferIdx buffer = 0;
  Time start = 0;
  Time end = 0;
  Bytes lower = 0;
  Bytes upper = 0;
};

// Addresses [lower, upper) that no buffer may use at any time.
struct Reserved {
  Bytes lower = 0;
  Bytes upper = 0;
};

// The buffers that may not share an address although they share no time, as compressed rows: buffer
// b conflicts with other[begin[b]] .. other[begin[b + 1] - 1]. Sorted in every row, and symmetric.
// `begin` is empty where there are none.
struct Conflicts {
  std::vector<std::int64_t> begin;
  std::vector<BufferIdx> other;

  bool empty() const { return other.empty(); }
  const BufferIdx* first(BufferIdx b) const { return other.data() + (empty() ? 0 : begin[b]); }
  const BufferIdx* last(BufferIdx b) const { return other.data() + (empty() ? 0 : begin[b + 1]); }
};

constexpr std::int32_t kNoGroup = -1;

// Columns: row i of each is buffer i. The optional columns are either empty or of full length.
struct Problem {
  std::vector<Time> start;  // lifetime [start, end)
  std::vector<Time> end;
  std::vector<Bytes> size;          // 0 is allowed: such a buffer conflicts with nothing
  std::vector<Bytes> alignment;     // the offset is a multiple of it; empty: all 1
  std::vector<Bytes> pin;           // the offset itself, or kNoOffset; empty: none pinned
  std::vector<Bytes> hint;          // an offset to prefer, or kNoOffset; empty: no hints
  std::vector<Gap> gaps;            // sorted by (buffer, start), disjoint per buffer
  std::vector<Reserved> reserved;   // sorted, disjoint
  std::optional<Bytes> capacity;    // offset + size <= capacity
  Conflicts conflicts;              // beyond lifetimes; they bar the whole of both buffers
  std::vector<std::int32_t> group;  // contiguous: offset - lead is the same in all of a group;
  std::vector<Bytes> lead;          // kNoGroup: in none, and no lead. Both empty: no groups

  BufferIdx count() const { return static_cast<BufferIdx>(size.size()); }
  Bytes alignment_of(BufferIdx b) const { return alignment.empty() ? 1 : alignment[b]; }
  Bytes pin_of(BufferIdx b) const { return pin.empty() ? kNoOffset : pin[b]; }
  Bytes hint_of(BufferIdx b) const { return hint.empty() ? kNoOffset : hint[b]; }
  std::int32_t group_of(BufferIdx b) const { return group.empty() ? kNoGroup : group[b]; }
};

// How long a buffer lives. It is a double, since end - start needs 65 bits and may be no Time.
inline double lifetime_of(const Problem& problem, BufferIdx b) {
  return static_cast<double>(static_cast<std::uint64_t>(problem.end[b]) -
                             static_cast<std::uint64_t>(problem.start[b]));
}

// Whether buffers are related in other ways than by lifetimes and gaps.
inline bool has_relations(const Problem& problem) {
  return !problem.conflicts.empty() || !problem.group.empty();
}

// Whether the problem has pins or reserved ranges.
inline bool limits_offsets(const Problem& problem) {
  return !problem.pin.empty() || !problem.reserved.empty();
}

// Whether a buffer has a pin or an alignment, or the problem reserved ranges.
bool limits_places(const Problem& problem);

struct Sections;

// An empty string, or one sentence that names the first buffer and field that is wrong. It
// sweeps a problem without a fault on the way, and leaves the result in `sections` if that is
// given.
std::string check(const Problem& problem, Sections* sections = nullptr);

}  // namespace memplan
