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
#include "util/bit_scan.h"
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

// By buffer, the least value over its sections, or `none` where it has none.
std::vector<Bytes> least_over_spans(const Sections& sections, const std::vector<Bytes>& values,
                                    Bytes none) {
  const RangeBest<Bytes, std::less<>> best(values);
  std::vector<Bytes> least(sections.span_begin.size() - 1, none);
  for (std::size_t b = 0; b < least.size(); ++b) {
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      least[b] = std::min(least[b], best.over(sections.spans[i].first, sections.spans[i].last));
    }
  }
  return least;
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

using P = const Profile&;
using B = BufferIdx;

constexpr std::array<Order, kOrderCount> kAllOrders = {{
    {"size", [](P p, B b) { return Key{p.extent(b), p.lifetime(b)}; }},
    {"area", [](P p, B b) { return Key{p.extent(b) * p.lifetime(b), p.extent(b)}; }},
    {"lifetime", [](P p, B b) { return Key{p.lifetime(b), p.extent(b)}; }},
    {"start", [](P p, B b) { return Key{-start_of(p, b), p.extent(b)}; }},
    {"contention", [](P p, B b) { return Key{p.contention[b], p.extent(b)}; }},
    {"tflite_by_size", tflite_by_size},
    // Operators by falling breadth, which is the load; the buffers of each by falling size.
    {"tflite_by_breadth", [](P p, B b) { return Key{-p.breadth_rank(b), p.extent(b)}; }},
    {"tela", tela_key},
    // Greedy Breadth and Greedy Unsafe of SOMAS, section 5.2.
    {"breadth", [](P p, B b) { return Key{p.breadth(b), p.extent(b)}; }},
    {"conflicts", [](P p, B b) { return Key{p.conflicts(b), p.extent(b)}; }},
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
    {"peak_distance", [](P p, B b) { return Key{-p.distance(b), p.length[b]}; }},
}};
static_assert(kAllOrders.back().key != nullptr);

// Maps a double to an unsigned number of the reverse order; both zeros are equal.
std::uint64_t descending(double key) {
  const double negative = 0.0 - key;
  std::uint64_t bits;
  std::memcpy(&bits, &negative, sizeof bits);
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// A column of keys as numbers of the reverse order, the least of them 0. Most keys are whole
// numbers in a small range, so that several columns fit into one word.
struct Column {
  std::vector<Bytes> value;
  int shift = 0;  // bits that are 0 in all of them
  int width = 0;  // bits of the greatest beyond those

  Column(const std::vector<KeyedBuffer>& rows, std::size_t k) : value(rows.size()) {
    double greatest = rows[0].key[k];
    bool whole = true;
    for (const KeyedBuffer& row : rows) {
      const double key = row.key[k];
      greatest = std::max(greatest, key);
      whole = whole && std::abs(key) < 0x1p52 &&
              key == static_cast<double>(static_cast<std::int64_t>(key));
    }
    const std::uint64_t least = descending(greatest);
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double key = rows[i].key[k];
      value[i] =
          whole ? static_cast<Bytes>(greatest - key) : static_cast<Bytes>(descending(key) - least);
      any |= static_cast<std::uint64_t>(value[i]);
    }
    if (any == 0) return;
    shift = lowest_bit(any);
    width = highest_bit(any) + 1 - shift;
  }

  std::uint64_t word(std::int32_t row) const {
    return static_cast<std::uint64_t>(value[row]) >> shift;
  }
};

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

Profile::Profile(const Problem& asked, const Sections& swept, Stopper& stopper)
    : problem(asked),
      sections(swept),
      length(asked.size.size(), 0),
      contention(asked.size.size(), 0) {
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
  std::vector<Bytes> load = loads(sections);
  for (Bytes& each : load) each = -each;
  peak_ = static_cast<SectionIdx>(std::min_element(load.begin(), load.end()) - load.begin());
  max_load = -static_cast<double>(load[peak_]);
  const std::vector<Bytes> least = least_over_spans(sections, load, 0);
  for (BufferIdx b = 0; b < problem.count() && !stopper.expired(); ++b) {
    contention[b] = static_cast<double>(-least[b]);
    for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
      length[b] += sections.spans[i].last - sections.spans[i].first + 1;
    }
  }
  minus_load_ = std::move(load);
}

double Profile::breadth(BufferIdx b) const {
  const auto first = sections.span_begin[b];
  if (minus_load_.empty() || first == sections.span_begin[b + 1]) return 0;
  return static_cast<double>(-minus_load_[sections.spans[first].first]);
}

double Profile::distance(BufferIdx b) const {
  SectionIdx away = sections.count;
  for (auto i = sections.span_begin[b]; i < sections.span_begin[b + 1]; ++i) {
    away = std::min(away, gap_to(sections.spans[i], peak_));
  }
  return away;
}

double Profile::conflicts(BufferIdx b) const {
  if (conflicts_.empty()) conflicts_ = count_conflicts(problem, sections);
  return conflicts_[b];
}

double Profile::breadth_rank(BufferIdx b) const {
  if (minus_load_.empty()) return 0;
  if (breadth_rank_.empty()) {
    std::vector<Bytes> rank(minus_load_.size());
    Bytes next = 0;
    for (const Ranked& each :
         ranked(rank.size(), [this](SectionIdx s) { return minus_load_[s]; })) {
      rank[each.row] = next++;
    }
    breadth_rank_ = least_over_spans(sections, rank, sections.count);
  }
  return static_cast<double>(breadth_rank_[b]);
}

const std::array<Order, kOrderCount>& orders() { return kAllOrders; }

const Order& order_of(const std::string& name) {
  return *std::find_if(orders().begin(), orders().end(),
                       [&name](const Order& order) { return name == order.name; });
}

std::vector<BufferIdx> sorted(const std::vector<KeyedBuffer>& rows, Stopper& stopper) {
  std::vector<std::int32_t> at(rows.size());  // by place, a row
  std::iota(at.begin(), at.end(), 0);
  if (rows.empty()) return at;
  std::vector<Ranked> places(rows.size());
  int used = 0;  // bits of the words in `places`, of which the least stands for 0
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto sort_places = [&] {
    if (used == 0) return;
    sort_ranked(places.data(), places.data() + places.size());
    const std::vector<std::int32_t> was = at;
    std::transform(places.begin(), places.end(), at.begin(),
                   [&was](const Ranked& r) { return was[r.row]; });
    used = 0;
  };
  // The least important column comes first, as each sort keeps the order of equal rows.
  for (std::size_t k = std::tuple_size<Key>::value; k-- > 0 && !stopper.look();) {
    const Column column(rows, k);
    if (column.width == 0) continue;
    if (used + column.width > 64) sort_places();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t before = used == 0 ? kLeast : places[i].key;
      const auto bits = static_cast<std::int64_t>(column.word(at[i]) << used);
      places[i] = {before ^ bits, static_cast<std::int32_t>(i)};
    }
    used += column.width;
  }
  sort_places();
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
