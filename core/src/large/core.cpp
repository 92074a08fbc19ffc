#include "large/core.h"

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

// A rejected buffer rarely lives long; of one that does, not all sections are to blame.
constexpr std::ptrdiff_t kSectionsPerRejected = 8;

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

Core::Core(const Problem& problem, const Sections& sections, const std::vector<double>& room)
    : problem_(problem),
      sections_(sections),
      room_(room),
      hard_(room.size(), 0),
      forced_(problem.size.size(), 0) {}

void Core::widen(double room) {
  for (std::size_t s = 0; s < hard_.size(); ++s) {
    if (room_[s] <= room) hard_[s] = 1;
  }
}

// A buffer that is rejected for the first time joins by itself. If it is rejected again, others are
// in its way: then the tightest sections of its lifetime become hard, and all that lives there
// joins.
bool Core::grow(const std::vector<BufferIdx>& rejected) {
  bool grown = false;
  std::vector<SectionIdx> tightest;
  for (const BufferIdx b : rejected) {
    if (forced_[b] == 0) {
      forced_[b] = 1;
      grown = true;
      continue;
    }
    MEMPLAN_ASSERT(hard_.size() == static_cast<std::size_t>(sections_.count));
    tightest.clear();
    for (auto i = sections_.span_begin[b]; i < sections_.span_begin[b + 1]; ++i) {
      for (auto s = sections_.spans[i].first; s <= sections_.spans[i].last; ++s) {
        tightest.push_back(s);
      }
    }
    const auto kept = std::min(static_cast<std::ptrdiff_t>(tightest.size()), kSectionsPerRejected);
    std::partial_sort(tightest.begin(), tightest.begin() + kept, tightest.end(),
                      [this](SectionIdx x, SectionIdx y) {
                        return room_[x] != room_[y] ? room_[x] < room_[y] : x < y;
                      });
    for (std::ptrdiff_t k = 0; k < kept; ++k) {
      grown = grown || hard_[tightest[k]] == 0;
      hard_[tightest[k]] = 1;
    }
  }
  return grown;
}

std::vector<BufferIdx> Core::members() const {
  std::vector<std::int32_t> hard_before(hard_.size() + 1, 0);
  for (std::size_t s = 0; s < hard_.size(); ++s) hard_before[s + 1] = hard_before[s] + hard_[s];
  std::vector<BufferIdx> members;
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    bool in = forced_[b] != 0 || problem_.pin_of(b) != kNoOffset;
    for (auto i = sections_.span_begin[b]; !in && i < sections_.span_begin[b + 1]; ++i) {
      in = hard_before[sections_.spans[i].last + 1] > hard_before[sections_.spans[i].first];
    }
    if (in) members.push_back(b);
  }
  return members;
}

}  // namespace memplan::chain
