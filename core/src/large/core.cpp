#include "large/core.h"

#include <algorithm>
#include <cstddef>

#include "util/invariants.h"

namespace memplan::chain {

namespace {

// A rejected buffer rarely lives long; of one that does, not all sections are to blame.
constexpr std::ptrdiff_t kSectionsPerRejected = 8;

}  // namespace

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
