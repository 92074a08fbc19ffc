#include "greedy/orders.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "model/blocks.h"
#include "util/range_best.h"
#include "util/ranked.h"

namespace memplan {

namespace {

// How many sections lie between the span and section s.
SectionIdx gap_to(const Span& span, SectionIdx s) {
  return std::max({SectionIdx{0}, span.first - s, s - span.last});
}

// Counts conflicts by lifetimes (gaps are ignored) and listed ones. By lifetimes these are all
// buffers that began by the end of a buffer, without those that ended before it began.
std::vector<double> count_conflicts(const Problem& problem, const Sections& sections) {
  std::vector<double> begun(static_cast<std::size_t>(sections.count) + 1, 0);
  std::vector<double> ended(begun);
  const auto lives = [&sections](BufferIdx b) {
    return sections.span_begin[b] < sections.span_begin[b + 1];
  };
  const auto first = [&sections](BufferIdx b) {
    return sections.spans[sections.span_begin[b]].first;
  };
  const auto last = [&sections](BufferIdx b) {
    return sections.spans[sections.span_begin[b + 1] - 1].last;
  };
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (!lives(b)) continue;
    ++begun[first(b)];
    ++ended[last(b) + 1];
  }
  for (SectionIdx s = 0; s < sections.count; ++s) {
    begun[s + 1] += begun[s];
    ended[s + 1] += ended[s];
  }
  std::vector<double> count(problem.size.size(), 0);
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    const auto beyond = problem.conflicts.last(b) - problem.conflicts.first(b);
    count[b] = static_cast<double>(beyond);
    if (lives(b)) count[b] += begun[last(b)] - ended[first(b)] - 1;
  }
  return count;
}

double start_of(const Profile& p, BufferIdx b) { return static_cast<double>(p.problem.start[b]); }

// The power of two at or below the length: buffers of like length together.
double length_class(const Profile& p, BufferIdx b) {
  return p.length[b] > 0 ? std::ilogb(p.length[b]) : 0;
}

int room_class(double room, double size) {
  constexpr double kLeast = 0x1p-10;
  return std::ilogb(std::max(kLeast, room / std::max(1.0, size)));
}

// There are 32 classes between 0 and the peak.
double load_class(const Profile& p, BufferIdx b) {
  return p.max_load > 0 ? std::floor(32 * (p.contention[b] / p.max_load)) : 0;
}

// TFLite puts tensors that live all the time first, by index, and the rest by falling size; of
// two alike, the one allocated earlier goes first.
Key tflite_by_size(const Profile& p, BufferIdx b) {
  const bool always = p.problem.start[b] == p.first_start && p.problem.end[b] == p.last_end;
  if (always) return {1, 0, 0, 0};
  return {0, p.extent(b), -start_of(p, b), 0};
}

// TelaMalloc, section 3.1: contention, then alignment, size * lifetime^2, lifetime.
Key tela_key(const Profile& p, BufferIdx b) {
  const double lifetime = p.lifetime(b);
  return {p.contention[b], static_cast<double>(p.problem.alignment_of(b)),
          p.extent(b) * (lifetime * lifetime), lifetime};
}

// Maps a double to an integer of the reverse order; both zeros are equal.
std::int64_t descending(double key) {
  const double negative = 0.0 - key;
  std::int64_t bits;
  std::memcpy(&bits, &negative, sizeof bits);
  return bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
}

}  // namespace

double Profile::lifetime(BufferIdx b) const { return lifetime_of(problem, b); }

// A group counts with all of its bytes, since it finds a place for the whole or none.
double Profile::extent(BufferIdx b) const {
  return bytes.empty() ? static_cast<double>(problem.size[b]) : bytes[b];
}

int Profile::room_class(BufferIdx b) const {
  return memplan::room_class(max_load - contention[b], extent(b));
}

Key room_length_key(double room, double length, double size) {
  return {-static_cast<double>(room_class(room, size)), length, size};
}

Profile::Profile(const Problem& asked, const Sections& sections, Stopper& stopper)
    : problem(asked),
      length(asked.size.size(), 0),
      contention(asked.size.size(), 0),
      breadth_rank(asked.size.size(), 0),
      distance(asked.size.size(), 0),
      breadth(asked.size.size(), 0),
      conflicts(asked.size.size(), 0) {
  if (!problem.start.empty()) {
    first_start = *std::min_element(problem.start.begin(), problem.start.end());
    last_end = *std::max_element(problem.end.begin(), problem.end.end());
  }
  if (!problem.group.empty()) {
    const Blocks blocks(problem);
    bytes.reserve(problem.size.size());
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      const Shape shape = blocks.shape(b);
      bytes.push_back(static_cast<double>(shape.below) + static_cast<double>(shape.above));
    }
  }
  if (sections.count == 0 || stopper.look()) return;
  const std::vector<Bytes> load = loads(sections);
  const std::vector<Ranked> by_load =
      ranked(load.size(), [&load](SectionIdx s) { return -load[s]; });
  std::vector<SectionIdx> rank(load.size());
  for (std::size_t i = 0; i < by_load.size(); ++i) {
    rank[by_load[i].row] = static_cast<SectionIdx>(i);
  }
  max_load = static_cast<double>(load[by_load[0].row]);
  conflicts = count_conflicts(problem, sections);

  const RangeBest<SectionIdx, std::less<>> best(rank);  // the best-ranked section of a range
  for (BufferIdx b = 0; b < problem.count() && !stopper.expired(); ++b) {
    SectionIdx least = sections.count;
    SectionIdx away = sections.count;
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      const Span& span = sections.spans[i];
      length[b] += span.last - span.first + 1;
      least = std::min(least, best.over(span.first, span.last));
      away = std::min(away, gap_to(span, by_load[0].row));
    }
    if (least < sections.count) {
      breadth[b] = static_cast<double>(load[sections.spans[sections.span_begin[b]].first]);
    }
    breadth_rank[b] = least;
    distance[b] = away;
    contention[b] = least < sections.count ? static_cast<double>(load[by_load[least].row]) : 0;
  }
}

const std::vector<Order>& orders() {
  using P = const Profile&;
  using B = BufferIdx;
  static const std::vector<Order> all = {
      {"size", [](P p, B b) { return Key{p.extent(b), p.lifetime(b)}; }},
      {"area", [](P p, B b) { return Key{p.extent(b) * p.lifetime(b), p.extent(b)}; }},
      {"lifetime", [](P p, B b) { return Key{p.lifetime(b), p.extent(b)}; }},
      {"start", [](P p, B b) { return Key{-start_of(p, b), p.extent(b)}; }},
      {"contention", [](P p, B b) { return Key{p.contention[b], p.extent(b)}; }},
      {"tflite_by_size", tflite_by_size},
      // Operators by falling breadth, which is the load; the buffers of each by falling size.
      {"tflite_by_breadth",
       [](P p, B b) { return Key{-static_cast<double>(p.breadth_rank[b]), p.extent(b)}; }},
      {"tela", tela_key},
      // Greedy Breadth and Greedy Unsafe of SOMAS, section 5.2.
      {"breadth", [](P p, B b) { return Key{p.breadth[b], p.extent(b)}; }},
      {"conflicts", [](P p, B b) { return Key{p.conflicts[b], p.extent(b)}; }},
      // The rest follow no publication; they won on measured problems.
      {"room_length",
       [](P p, B b) {
         return room_length_key(p.max_load - p.contention[b], p.length[b], p.extent(b));
       }},
      {"contention_length", [](P p, B b) { return Key{p.contention[b], p.length[b]}; }},
      {"load_class", [](P p, B b) { return Key{load_class(p, b), p.extent(b)}; }},
      {"length", [](P p, B b) { return Key{p.length[b], p.extent(b)}; }},
      {"length_class_start", [](P p, B b) { return Key{length_class(p, b), -start_of(p, b)}; }},
      {"length_class_size", [](P p, B b) { return Key{length_class(p, b), p.extent(b)}; }},
      {"peak_distance", [](P p, B b) { return Key{-p.distance[b], p.length[b]}; }},
  };
  return all;
}

const Order& order_of(const std::string& name) {
  return *std::find_if(orders().begin(), orders().end(),
                       [&name](const Order& order) { return name == order.name; });
}

std::vector<BufferIdx> sorted(const std::vector<KeyedBuffer>& rows, Stopper& stopper) {
  // Sorts by the least important key first, as each sort keeps the order of equal rows.
  std::vector<std::int32_t> at(rows.size());  // by place, a row
  std::iota(at.begin(), at.end(), 0);
  std::vector<std::int32_t> was;
  for (std::size_t k = std::tuple_size<Key>::value; k-- > 0 && !stopper.look();) {
    const std::vector<Ranked> by_key =
        ranked(rows.size(), [&](std::int32_t place) { return descending(rows[at[place]].key[k]); });
    was = at;
    std::transform(by_key.begin(), by_key.end(), at.begin(),
                   [&was](const Ranked& r) { return was[r.row]; });
  }
  std::transform(at.begin(), at.end(), at.begin(),
                 [&rows](std::int32_t row) { return rows[row].buffer; });
  return at;
}

std::vector<BufferIdx> sorted(KeyOf key, const Profile& profile, Stopper& stopper) {
  std::vector<KeyedBuffer> rows(profile.length.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto b = static_cast<BufferIdx>(i);
    rows[i] = {key(profile, b), b};
  }
  return sorted(rows, stopper);
}

}  // namespace memplan
