#include "large/rooms.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "util/invariants.h"

namespace memplan::chain {

namespace {

// The most bytes that one span holds, for every section. The spans come from the largest down, and
// each paints the sections that no larger one has painted; `next` skips those.
std::vector<Bytes> widest(const Sections& sections) {
  std::vector<std::pair<Bytes, std::int32_t>> by_width;
  by_width.reserve(sections.spans.size());
  for (std::size_t i = 0; i < sections.spans.size(); ++i) {
    const Span& span = sections.spans[i];
    by_width.emplace_back(span.lower - span.upper, static_cast<std::int32_t>(i));
  }
  std::sort(by_width.begin(), by_width.end());
  std::vector<SectionIdx> next(static_cast<std::size_t>(sections.count) + 1);
  std::iota(next.begin(), next.end(), 0);
  const auto unpainted = [&next](SectionIdx s) {
    while (next[s] != s) s = next[s] = next[next[s]];
    return s;
  };
  std::vector<Bytes> width(sections.count, 0);
  for (const auto& [negative, i] : by_width) {
    const Span& span = sections.spans[i];
    for (auto s = unpainted(span.first); s <= span.last; s = unpainted(s)) {
      width[s] = -negative;
      next[s] = s + 1;
    }
  }
  return width;
}

}  // namespace

std::vector<double> rooms(const Problem& problem, const Sections& sections, Bytes target) {
  Bytes usable = target;
  for (const Reserved& r : problem.reserved) {
    usable -= std::max<Bytes>(0, std::min(r.upper, target) - r.lower);
  }
  const std::vector<Bytes> load = loads(sections);
  const std::vector<Bytes> width = widest(sections);
  std::vector<double> room(load.size());
  for (std::size_t s = 0; s < room.size(); ++s) {
    MEMPLAN_ASSERT(width[s] > 0 && width[s] <= load[s]);
    room[s] = static_cast<double>(usable - load[s]) / static_cast<double>(width[s]);
  }
  return room;
}

}  // namespace memplan::chain
