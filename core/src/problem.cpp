#include "memplan/problem.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>

#include "memplan/sections.h"

// Each rule answers with an empty string, or with the sentence that check() hands on. They run in
// the order of check(), and every one relies on those before it.

namespace memplan {

namespace {

template <typename... Parts>
std::string say(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
std::string blame(BufferIdx b, const Parts&... parts) {
  return say("buffer ", b, ": ", parts...);
}

std::string check_columns(const Problem& problem) {
  const std::size_t n = problem.size.size();
  // Spans are counted in 32 bits; a gap adds at most two of them.
  constexpr std::size_t kMaxRows = std::numeric_limits<BufferIdx>::max() / 4;
  if (n > kMaxRows) return say("size has ", n, " rows, but at most ", kMaxRows, " are supported");
  if (problem.gaps.size() > kMaxRows) {
    return say("gaps has ", problem.gaps.size(), " rows, but at most ", kMaxRows, " are supported");
  }
  const auto wrong = [n](const char* column, std::size_t rows, bool optional) {
    if (rows == n || (optional && rows == 0)) return std::string();
    return say(column, " has ", rows, " rows, but size has ", n);
  };
  for (const std::string& error :
       {wrong("start", problem.start.size(), false), wrong("end", problem.end.size(), false),
        wrong("alignment", problem.alignment.size(), true), wrong("pin", problem.pin.size(), true),
        wrong("hint", problem.hint.size(), true)}) {
    if (!error.empty()) return error;
  }
  return {};
}

std::string check_capacity(const Problem& problem) {
  if (!problem.capacity || (*problem.capacity >= 1 && *problem.capacity <= kMaxBytes)) return {};
  return say("capacity is ", *problem.capacity, ", but must be between 1 and 2^62");
}

std::string check_buffer(const Problem& problem, BufferIdx b) {
  if (problem.end[b] <= problem.start[b]) {
    return blame(b, "end is ", problem.end[b], ", but must be after start ", problem.start[b]);
  }
  const Bytes size = problem.size[b];
  if (size < 0 || size > kMaxBytes) {
    return blame(b, "size is ", size, ", but must be between 0 and 2^62");
  }
  const Bytes alignment = problem.alignment_of(b);
  if (alignment < 1 || alignment > kMaxBytes) {
    return blame(b, "alignment is ", alignment, ", but must be between 1 and 2^62");
  }
  const Bytes hint = problem.hint_of(b);
  if (hint != kNoOffset && (hint < 0 || hint > kMaxBytes)) {
    return blame(b, "hint is ", hint, ", but must be between 0 and 2^62");
  }
  return {};
}

std::string check_pin(const Problem& problem, BufferIdx b) {
  const Bytes pin = problem.pin_of(b);
  if (pin == kNoOffset) return {};
  const Bytes size = problem.size[b];
  if (pin < 0 || pin > kMaxBytes - size) {
    return blame(b, "pin is ", pin, ", but must be at least 0 and end at or below 2^62");
  }
  if (pin % problem.alignment_of(b) != 0) {
    return blame(b, "pin is ", pin, ", but must be a multiple of the alignment ",
                 problem.alignment_of(b));
  }
  if (problem.capacity && pin + size > *problem.capacity) {
    return blame(b, "pin ", pin, " and size ", size, " end beyond the capacity ",
                 *problem.capacity);
  }
  if (size == 0) return {};
  for (const Reserved& r : problem.reserved) {
    if (pin < r.upper && r.lower < pin + size) {
      return blame(b, "pin ", pin, " and size ", size, " touch the reserved range [", r.lower, ", ",
                   r.upper, ")");
    }
  }
  return {};
}

std::string check_gap(const Problem& problem, std::size_t i) {
  const Gap& g = problem.gaps[i];
  const BufferIdx b = g.buffer;
  if (b < 0 || b >= problem.count()) return say("gap ", i, ": there is no buffer ", b);
  if (g.end <= g.start) return blame(b, "gap [", g.start, ", ", g.end, ") is empty");
  if (g.start < problem.start[b] || g.end > problem.end[b]) {
    return blame(b, "gap [", g.start, ", ", g.end, ") is not inside the lifetime [",
                 problem.start[b], ", ", problem.end[b], ")");
  }
  if (g.lower < 0 || g.lower > g.upper || g.upper > problem.size[b]) {
    return blame(b, "the window [", g.lower, ", ", g.upper, ") of gap [", g.start, ", ", g.end,
                 ") is not inside the size ", problem.size[b]);
  }
  if (i == 0) return {};
  const Gap& before = problem.gaps[i - 1];
  if (before.buffer > b || (before.buffer == b && before.start > g.start)) {
    return blame(b, "gap [", g.start, ", ", g.end, ") is not sorted by buffer and start");
  }
  if (before.buffer == b && before.end > g.start) {
    return blame(b, "gap [", g.start, ", ", g.end, ") overlaps gap [", before.start, ", ",
                 before.end, ")");
  }
  return {};
}

std::string check_reserved(const Problem& problem, std::size_t i) {
  const Reserved& r = problem.reserved[i];
  if (r.lower < 0 || r.lower >= r.upper || r.upper > kMaxBytes) {
    return say("reserved range [", r.lower, ", ", r.upper,
               ") must be between 0 and 2^62 and not empty");
  }
  if (i > 0 && problem.reserved[i - 1].upper > r.lower) {
    return say("reserved range [", r.lower, ", ", r.upper,
               ") is not sorted, or overlaps the one before it");
  }
  return {};
}

// Sums stop just above the limit: where that much begins or ends, the section is too full anyhow.
std::string check_load(const Sections& sections) {
  const auto add = [](Bytes* sum, Bytes bytes) {
    *sum = bytes > kMaxBytes - *sum ? kMaxBytes + 1 : *sum + bytes;
  };
  std::vector<Bytes> begin(static_cast<std::size_t>(sections.count), 0);
  std::vector<Bytes> end(begin);
  for (const Span& span : sections.spans) {
    add(&begin[span.first], span.upper - span.lower);
    add(&end[span.last], span.upper - span.lower);
  }
  Bytes load = 0;
  for (SectionIdx s = 0; s < sections.count; ++s) {
    load += begin[s];
    if (load > kMaxBytes) {
      const auto span = std::find_if(sections.spans.begin(), sections.spans.end(),
                                     [s](const Span& x) { return x.first <= s && s <= x.last; });
      const auto at = static_cast<std::int32_t>(span - sections.spans.begin());
      const auto owner =
          std::upper_bound(sections.span_begin.begin(), sections.span_begin.end(), at);
      return blame(static_cast<BufferIdx>(owner - sections.span_begin.begin()) - 1,
                   "size: it and the buffers alive with it at time ", sections.start[s],
                   " hold more than 2^62 bytes together");
    }
    load -= end[s];
  }
  return {};
}

// Sweeps the pinned spans in time and keeps what they hold at each moment in address order, so
// that a newcomer can only collide with its neighbours.
std::string check_pins_apart(const Problem& problem, const Sections& sections) {
  if (problem.pin.empty()) return {};
  struct Held {
    Bytes upper;
    BufferIdx buffer;
  };
  struct Event {
    SectionIdx section;
    bool begins;  // ends sort first
    Bytes lower;
    Held held;
  };
  std::vector<Event> events;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    const Bytes pin = problem.pin[b];
    if (pin == kNoOffset) continue;
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& span = sections.spans[i];
      const Held held{pin + span.upper, b};
      events.push_back({span.first, true, pin + span.lower, held});
      events.push_back({span.last + 1, false, pin + span.lower, held});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& x, const Event& y) {
    if (x.section != y.section) return x.section < y.section;
    if (x.begins != y.begins) return !x.begins;
    return x.held.buffer < y.held.buffer;
  });
  std::map<Bytes, Held> held;  // by lower address
  const auto collision = [&problem](BufferIdx b, BufferIdx other) {
    return blame(std::max(b, other), "pin ", problem.pin[std::max(b, other)],
                 " collides with the pin ", problem.pin[std::min(b, other)], " of buffer ",
                 std::min(b, other), ", which is alive at the same time");
  };
  for (const Event& event : events) {
    if (!event.begins) {
      held.erase(event.lower);
      continue;
    }
    const auto above = held.lower_bound(event.lower);
    if (above != held.end() && above->first < event.held.upper) {
      return collision(event.held.buffer, above->second.buffer);
    }
    if (above != held.begin() && std::prev(above)->second.upper > event.lower) {
      return collision(event.held.buffer, std::prev(above)->second.buffer);
    }
    held.emplace_hint(above, event.lower, event.held);
  }
  return {};
}

}  // namespace

std::string check(const Problem& problem) {
  std::string error = check_columns(problem);
  if (error.empty()) error = check_capacity(problem);
  for (std::size_t i = 0; error.empty() && i < problem.reserved.size(); ++i) {
    error = check_reserved(problem, i);
  }
  for (BufferIdx b = 0; error.empty() && b < problem.count(); ++b) {
    error = check_buffer(problem, b);
    if (error.empty()) error = check_pin(problem, b);
  }
  for (std::size_t i = 0; error.empty() && i < problem.gaps.size(); ++i) {
    error = check_gap(problem, i);
  }
  if (!error.empty()) return error;
  const Sections sections = sweep(problem);
  error = check_load(sections);
  return error.empty() ? check_pins_apart(problem, sections) : error;
}

}  // namespace memplan
