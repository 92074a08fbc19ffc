#include "compat/held.h"

#include <algorithm>

namespace minimalloc {
inline namespace memplan_compat {

namespace {

// The times at which one of two buffers changes what it holds.
std::vector<TimeValue> changes_of_both(const Buffer& a, const Buffer& b) {
  std::vector<TimeValue> times = detail::ChangesOf(a);
  const std::vector<TimeValue> others = detail::ChangesOf(b);
  times.insert(times.end(), others.begin(), others.end());
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

std::vector<TimeValue> detail::ChangesOf(const Buffer& buffer) {
  std::vector<TimeValue> times = {buffer.lifespan.lower(), buffer.lifespan.upper()};
  for (const Gap& gap : buffer.gaps) {
    for (const TimeValue time : {gap.lifespan.lower(), gap.lifespan.upper()}) {
      if (time > buffer.lifespan.lower() && time < buffer.lifespan.upper()) times.push_back(time);
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

std::optional<Window> detail::HeldAt(const Buffer& buffer, TimeValue time) {
  if (time < buffer.lifespan.lower() || time >= buffer.lifespan.upper()) return std::nullopt;
  // The last change up to now decides. Of those at one time it is the start of the lifespan before
  // the end of a gap, and that before the start of a gap.
  std::pair<TimeValue, int> last = {buffer.lifespan.lower(), 0};
  std::optional<Window> held = Window{0, buffer.size};
  for (const Gap& gap : buffer.gaps) {
    if (gap.lifespan.lower() >= gap.lifespan.upper()) continue;
    const std::pair<TimeValue, int> ends = {gap.lifespan.upper(), 1};
    const std::pair<TimeValue, int> begins = {gap.lifespan.lower(), 2};
    if (ends.first <= time && ends > last) {
      last = ends;
      held = Window{0, buffer.size};
    }
    if (begins.first <= time && begins > last) {
      last = begins;
      held = gap.window;
    }
  }
  return held;
}

bool Gap::operator==(const Gap& other) const {
  return lifespan == other.lifespan && window == other.window;
}

bool Buffer::operator==(const Buffer& other) const {
  return id == other.id && lifespan == other.lifespan && size == other.size &&
         alignment == other.alignment && gaps == other.gaps && offset == other.offset;
}

bool Problem::operator==(const Problem& other) const {
  return buffers == other.buffers && capacity == other.capacity;
}

Area Buffer::area() const { return size * (lifespan.upper() - lifespan.lower()); }

std::optional<std::int64_t> Buffer::effective_size(const Buffer& other) const {
  std::optional<std::int64_t> most;
  for (const TimeValue time : changes_of_both(*this, other)) {
    const std::optional<Window> below = detail::HeldAt(*this, time);
    const std::optional<Window> above = detail::HeldAt(other, time);
    if (!below || !above) continue;
    const std::int64_t needed = below->upper() - above->lower();
    if (!most || *most < needed) most = needed;
  }
  return most;
}

}  // namespace memplan_compat
}  // namespace minimalloc
