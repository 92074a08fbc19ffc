#include "published/telamalloc/room.h"

#include <algorithm>
#include <cstddef>

#include "util/invariants.h"

namespace memplan {

Room::Room(const Items& items, const ValidRanges& ranges)
    : items_(items),
      ranges_(ranges),
      first_(static_cast<std::size_t>(items.section_count) + 1, 0),
      unplaced_(static_cast<std::size_t>(items.section_count), 0),
      low_(static_cast<std::size_t>(items.section_count), kNoItem) {
  for (const Span& span : items.spans) {
    for (SectionIdx s = span.first; s <= span.last; ++s) ++first_[s + 1];
  }
  for (SectionIdx s = 0; s < items.section_count; ++s) first_[s + 1] += first_[s];
  live_.resize(static_cast<std::size_t>(first_.back()));
  std::vector<std::int32_t> next(first_.begin(), first_.end() - 1);
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (const Span* span = items.begin(i); span != items.end(i); ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) {
        live_[next[s]++] = i;
        low_[s] = i;
      }
    }
    if (!ranges.placed(i)) take_back(i);
  }
}

void Room::add(ItemIdx i, Bytes bytes) {
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    for (SectionIdx s = span->first; s <= span->last; ++s) unplaced_[s] += bytes;
  }
}

SectionIdx Room::overfull(ItemIdx i) {
  for (const Span* span = items_.begin(i); span != items_.end(i); ++span) {
    for (SectionIdx s = span->first; s <= span->last; ++s) {
      if (unplaced_[s] > 0 && !has_room(s)) return s;
    }
  }
  return -1;
}

bool Room::has_room(SectionIdx s) {
  const Bytes floor = items_.highest_floor(unplaced_[s]);
  const auto shows = [this, floor](ItemIdx i) {
    return !ranges_.placed(i) && ranges_.lower(i) <= floor;
  };
  if (shows(low_[s])) return true;
  const ItemIdx* const found = std::find_if(begin(s), end(s), shows);
  if (found == end(s)) return false;
  low_[s] = *found;
  return true;
}

bool Room::check_invariants() const {
  if (!kAssertions) return true;
  for (SectionIdx s = 0; s < items_.section_count; ++s) {
    Bytes bytes = 0;
    for (const ItemIdx* i = begin(s); i != end(s); ++i) {
      bytes += ranges_.placed(*i) ? 0 : items_.size[*i];
    }
    MEMPLAN_ASSERT(bytes == unplaced_[s]);
  }
  return true;
}

}  // namespace memplan
