#include "memplan/problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "memplan/sections.h"
#include "util/ranked.h"

// Each rule returns an empty string, or the sentence that check() returns. They run in the order of
// check(), and every one relies on those before it.

namespace memplan {

namespace {

// The sentence, with the next number in place of each {}.
std::string say(const char* sentence, std::int64_t first = 0, std::int64_t second = 0,
                std::int64_t third = 0, std::int64_t fourth = 0, std::int64_t fifth = 0) {
  const std::int64_t numbers[] = {first, second, third, fourth, fifth};
  std::string result;
  for (const std::int64_t* next = numbers; *sentence != '\0'; ++sentence) {
    if (sentence[0] == '{' && sentence[1] == '}') {
      result += std::to_string(*next++);
      ++sentence;
    } else {
      result += *sentence;
    }
  }
  return result;
}

std::string blame(BufferIdx b, const char* sentence, std::int64_t first = 0,
                  std::int64_t second = 0, std::int64_t third = 0, std::int64_t fourth = 0,
                  std::int64_t fifth = 0) {
  return say("buffer {}: ", b) + say(sentence, first, second, third, fourth, fifth);
}

std::string check_columns(const Problem& problem) {
  const std::size_t n = problem.size.size();
  // Spans are counted in 32 bits; a gap adds at most two of them.
  constexpr std::size_t kMaxRows = std::numeric_limits<BufferIdx>::max() / 4;
  if (n > kMaxRows) return say("size has {} rows, but at most {} are supported", n, kMaxRows);
  if (problem.gaps.size() > kMaxRows) {
    return say("gaps has {} rows, but at most {} are supported", problem.gaps.size(), kMaxRows);
  }
  const struct {
    const char* name;
    std::size_t rows;
    bool optional;
  } columns[] = {
      {"start", problem.start.size(), false},        {"end", problem.end.size(), false},
      {"alignment", problem.alignment.size(), true}, {"pin", problem.pin.size(), true},
      {"hint", problem.hint.size(), true},           {"group", problem.group.size(), true},
      {"lead", problem.lead.size(), true},
  };
  for (const auto& [name, rows, optional] : columns) {
    if (rows == n || (optional && rows == 0)) continue;
    return name + say(" has {} rows, but size has {}", rows, n);
  }
  if (problem.group.size() == problem.lead.size()) return {};
  return say("group has {} rows, but lead has {}", problem.group.size(), problem.lead.size());
}

std::string check_conflicts(const Problem& problem) {
  const Conflicts& conflicts = problem.conflicts;
  const BufferIdx count = problem.count();
  const auto size = static_cast<std::int64_t>(conflicts.other.size());
  if (conflicts.begin.empty() && size == 0) return {};
  if (conflicts.begin.size() != static_cast<std::size_t>(count) + 1 || conflicts.begin[0] != 0 ||
      conflicts.begin.back() != size ||
      !std::is_sorted(conflicts.begin.begin(), conflicts.begin.end())) {
    return say("conflicts: begin must rise from 0 to {} in {} rows", size, count + 1);
  }
  for (BufferIdx b = 0; b < count; ++b) {
    for (const BufferIdx* other = conflicts.first(b); other != conflicts.last(b); ++other) {
      if (*other < 0 || *other >= count)
        return blame(b, "conflicts: there is no buffer {}", *other);
      if (*other == b) return blame(b, "conflicts: it cannot conflict with itself");
      if (other != conflicts.first(b) && other[-1] >= *other) {
        return blame(b, "conflicts: {} is not sorted, or occurs twice", *other);
      }
    }
  }
  // Sorted rows name each buffer in the order of this loop, so that each entry is visited once.
  std::vector<std::int64_t> next(conflicts.begin.begin(), conflicts.begin.end() - 1);
  const auto unanswered = [](BufferIdx b, BufferIdx other) {
    return blame(b, "conflicts: it names {}, but that does not name it", other);
  };
  for (BufferIdx b = 0; b < count; ++b) {
    for (const BufferIdx* other = conflicts.first(b); other != conflicts.last(b); ++other) {
      const BufferIdx* const at = conflicts.other.data() + next[*other]++;
      if (at == conflicts.last(*other) || *at > b) return unanswered(b, *other);
      if (*at < b) return unanswered(*other, *at);
    }
  }
  return {};
}

// The rows of one group, by lead: they lie one behind the other, and some offset must keep them
// together. The alignments of its members divide each other, and pins are as far apart as members.
std::string check_group(const Problem& problem, const std::vector<BufferIdx>& rows) {
  BufferIdx most = rows.front();  // the member with the strictest alignment
  BufferIdx pinned = -1;          // one of those with a pin
  for (const BufferIdx b : rows) {
    if (problem.alignment_of(b) > problem.alignment_of(most)) most = b;
    if (problem.pin_of(b) != kNoOffset) pinned = b;
  }
  BufferIdx below = -1;  // the last member with a size
  for (const BufferIdx b : rows) {
    const Bytes lead = problem.lead[b];
    const Bytes unit = problem.alignment_of(b);
    if (problem.alignment_of(most) % unit != 0 || (lead - problem.lead[most]) % unit != 0) {
      return blame(b,
                   "alignment {} cannot be kept together with that of buffer {} in its group ({})",
                   unit, most, problem.alignment_of(most));
    }
    if (problem.pin_of(b) != kNoOffset &&
        problem.pin[b] - lead != problem.pin[pinned] - problem.lead[pinned]) {
      return blame(b, "pin {} contradicts that of buffer {} in its group ({})", problem.pin[b],
                   pinned, problem.pin[pinned]);
    }
    if (problem.size[b] == 0) continue;
    if (below >= 0 && problem.size[below] > lead - problem.lead[below]) {
      return blame(b, "lead {} is inside buffer {} of its group (lead {}, size {})", lead, below,
                   problem.lead[below], problem.size[below]);
    }
    below = b;
  }
  return {};
}

std::string check_groups(const Problem& problem) {
  for (BufferIdx b = 0; b < static_cast<BufferIdx>(problem.group.size()); ++b) {
    if (problem.group[b] == kNoGroup) continue;
    if (problem.group[b] < 0) return blame(b, "group is {}, not a number", problem.group[b]);
    if (problem.lead[b] < 0 || problem.lead[b] > kMaxBytes - problem.size[b]) {
      return blame(b, "lead is {}, but must be at least 0 and end with size {} at or below 2^62",
                   problem.lead[b], problem.size[b]);
    }
  }
  const std::vector<Ranked> by_lead =
      ranked(problem.lead.size(), [&problem](std::int32_t b) { return problem.lead[b]; });
  std::vector<BufferIdx> rows;
  std::int64_t group = kNoGroup;
  for (const auto& [key, row] : ranked(by_lead.size(), [&problem, &by_lead](std::int32_t i) {
         return problem.group[by_lead[i].row];
       })) {
    if (key != group && !rows.empty()) {
      if (std::string error = check_group(problem, rows); !error.empty()) return error;
      rows.clear();
    }
    group = key;
    if (key != kNoGroup) rows.push_back(by_lead[row].row);
  }
  return rows.empty() ? std::string() : check_group(problem, rows);
}

std::string check_capacity(const Problem& problem) {
  if (!problem.capacity || (*problem.capacity >= 1 && *problem.capacity <= kMaxBytes)) return {};
  return say("capacity is {}, but must be between 1 and 2^62", *problem.capacity);
}

std::string check_buffer(const Problem& problem, BufferIdx b) {
  if (problem.start[b] < -kMaxTime || problem.end[b] > kMaxTime) {
    return blame(b, "its lifetime is [{}, {}), but times must be between -2^62 and 2^62",
                 problem.start[b], problem.end[b]);
  }
  if (problem.end[b] <= problem.start[b]) {
    return blame(b, "end is {}, but must be after start {}", problem.end[b], problem.start[b]);
  }
  const Bytes size = problem.size[b];
  if (size < 0 || size > kMaxBytes) {
    return blame(b, "size is {}, but must be between 0 and 2^62", size);
  }
  const Bytes alignment = problem.alignment_of(b);
  if (alignment < 1 || alignment > kMaxBytes) {
    return blame(b, "alignment is {}, but must be between 1 and 2^62", alignment);
  }
  const Bytes hint = problem.hint_of(b);
  if (hint != kNoOffset && (hint < 0 || hint > kMaxBytes)) {
    return blame(b, "hint is {}, but must be between 0 and 2^62", hint);
  }
  return {};
}

std::string check_pin(const Problem& problem, BufferIdx b) {
  const Bytes pin = problem.pin_of(b);
  if (pin == kNoOffset) return {};
  const Bytes size = problem.size[b];
  if (pin < 0 || pin > kMaxBytes - size) {
    return blame(b, "pin is {}, but must be at least 0 and end at or below 2^62", pin);
  }
  if (pin % problem.alignment_of(b) != 0) {
    return blame(b, "pin is {}, but must be a multiple of the alignment {}", pin,
                 problem.alignment_of(b));
  }
  if (size == 0) return {};
  for (const Reserved& r : problem.reserved) {
    if (pin < r.upper && r.lower < pin + size) {
      return blame(b, "pin {} and size {} touch the reserved range [{}, {})", pin, size, r.lower,
                   r.upper);
    }
  }
  return {};
}

std::string check_buffers(const Problem& problem) {
  std::string error;
  for (BufferIdx b = 0; error.empty() && b < problem.count(); ++b) {
    error = check_buffer(problem, b);
    if (error.empty()) error = check_pin(problem, b);
  }
  return error;
}

std::string check_gap(const Problem& problem, std::size_t i) {
  const Gap& g = problem.gaps[i];
  const BufferIdx b = g.buffer;
  if (b < 0 || b >= problem.count()) return say("gap {}: there is no buffer {}", i, b);
  if (g.end <= g.start) return blame(b, "gap [{}, {}) is empty", g.start, g.end);
  if (g.start < problem.start[b] || g.end > problem.end[b]) {
    return blame(b, "gap [{}, {}) is not inside the lifetime [{}, {})", g.start, g.end,
                 problem.start[b], problem.end[b]);
  }
  if (g.lower < 0 || g.lower > g.upper || g.upper > problem.size[b]) {
    return blame(b, "the window [{}, {}) of gap [{}, {}) is not inside the size {}", g.lower,
                 g.upper, g.start, g.end, problem.size[b]);
  }
  if (i == 0) return {};
  const Gap& before = problem.gaps[i - 1];
  if (before.buffer > b || (before.buffer == b && before.start > g.start)) {
    return blame(b, "gap [{}, {}) is not sorted by buffer and start", g.start, g.end);
  }
  if (before.buffer == b && before.end > g.start) {
    return blame(b, "gap [{}, {}) overlaps gap [{}, {})", g.start, g.end, before.start, before.end);
  }
  return {};
}

std::string check_gaps(const Problem& problem) {
  std::string error;
  for (std::size_t i = 0; error.empty() && i < problem.gaps.size(); ++i) {
    error = check_gap(problem, i);
  }
  return error;
}

std::string check_reserved(const Problem& problem) {
  Bytes before = 0;  // the end of the range before
  for (const Reserved& r : problem.reserved) {
    if (r.lower < 0 || r.lower >= r.upper || r.upper > kMaxBytes) {
      return say("reserved range [{}, {}) must be between 0 and 2^62 and not empty", r.lower,
                 r.upper);
    }
    if (r.lower < before) {
      return say("reserved range [{}, {}) is not sorted, or overlaps the one before it", r.lower,
                 r.upper);
    }
    before = r.upper;
  }
  return {};
}

// Sums stop just above the limit, so that they cannot overflow: a section with so much is too full
// anyway.
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
      std::int32_t at = 0;  // of a span that is live
      while (sections.spans[at].first > s || sections.spans[at].last < s) ++at;
      const auto owner =
          std::upper_bound(sections.span_begin.begin(), sections.span_begin.end(), at);
      return blame(
          static_cast<BufferIdx>(owner - sections.span_begin.begin()) - 1,
          "size: it and the buffers alive with it at time {} hold more than 2^62 bytes together",
          sections.start[s]);
    }
    load -= end[s];
  }
  return {};
}

// Sweeps the pinned spans in time and keeps what they hold at each moment in address order, so that
// a new span can only collide with its neighbours.
std::string check_pins_apart(const Problem& problem, const Sections& sections) {
  if (problem.pin.empty()) return {};
  struct Held {
    Bytes upper;
    BufferIdx buffer;
  };
  struct Event {
    SectionIdx section;
    bool begins;
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
  const std::vector<Ranked> in_time = ranked(events.size(), [&events](std::int32_t i) {
    return 2 * std::int64_t{events[i].section} + (events[i].begins ? 1 : 0);  // ends come first
  });
  std::map<Bytes, Held> held;  // by lower address
  const auto collision = [&problem](BufferIdx b, BufferIdx other) {
    return blame(std::max(b, other),
                 "pin {} collides with the pin {} of buffer {}, which is alive at the same time",
                 problem.pin[std::max(b, other)], problem.pin[std::min(b, other)],
                 std::min(b, other));
  };
  for (const auto& [when, row] : in_time) {
    const Event& event = events[row];
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

std::string check_conflicting_pins(const Problem& problem) {
  if (problem.pin.empty()) return {};
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.pin[b] == kNoOffset) continue;
    for (const BufferIdx* other = problem.conflicts.first(b); other != problem.conflicts.last(b);
         ++other) {
      if (*other > b || problem.pin[*other] == kNoOffset) continue;
      if (problem.pin[b] < problem.pin[*other] + problem.size[*other] &&
          problem.pin[*other] < problem.pin[b] + problem.size[b] && problem.size[b] > 0 &&
          problem.size[*other] > 0) {
        return blame(b, "pin {} collides with the pin {} of buffer {}, with which it conflicts",
                     problem.pin[b], problem.pin[*other], *other);
      }
    }
  }
  return {};
}

}  // namespace

bool limits_places(const Problem& problem) {
  if (!problem.reserved.empty()) return true;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.alignment_of(b) != 1 || problem.pin_of(b) != kNoOffset) return true;
  }
  return false;
}

std::string check(const Problem& problem, Sections* sections) {
  for (const auto rule : {check_columns, check_capacity, check_reserved, check_buffers, check_gaps,
                          check_conflicts, check_groups}) {
    if (std::string error = rule(problem); !error.empty()) return error;
  }
  Sections swept = sweep(problem);
  std::string error = check_load(swept);
  if (error.empty()) error = check_pins_apart(problem, swept);
  if (error.empty()) error = check_conflicting_pins(problem);
  if (sections != nullptr) *sections = std::move(swept);
  return error;
}

}  // namespace memplan
