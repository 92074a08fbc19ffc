#include <algorithm>
#include <numeric>

#include "compat/held.h"

namespace minimalloc {
inline namespace memplan_compat {

namespace {

// Whether two buffers hold an address at the same time; no bytes hold none.
bool overlap(const Buffer& a, Offset offset_a, const Buffer& b, Offset offset_b) {
  if (offset_a + a.size <= offset_b || offset_b + b.size <= offset_a) return false;
  for (const auto& times : {detail::ChangesOf(a), detail::ChangesOf(b)}) {
    for (const TimeValue time : times) {
      const Window held_a = detail::HeldAt(a, time).value_or(Window{0, 0});
      const Window held_b = detail::HeldAt(b, time).value_or(Window{0, 0});
      if (std::max(offset_a + held_a.lower(), offset_b + held_b.lower()) <
          std::min(offset_a + held_a.upper(), offset_b + held_b.upper())) {
        return true;
      }
    }
  }
  return false;
}

ValidationResult judge(const Problem& problem, const Buffer& buffer, Offset offset, Offset height) {
  if (buffer.offset && *buffer.offset != offset) return kBadFixed;
  if (offset < 0 || buffer.size < 0 || buffer.size > problem.capacity ||
      offset > problem.capacity - buffer.size) {
    return kBadOffset;
  }
  if (offset + buffer.size > height) return kBadHeight;
  if (buffer.alignment < 1 || offset % buffer.alignment != 0) return kBadAlignment;
  return kGood;
}

}  // namespace

ValidationResult Validate(const Problem& problem, const Solution& solution) {
  const std::size_t count = problem.buffers.size();
  if (solution.offsets.size() != count) return kBadSolution;
  Offset height = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Buffer& buffer = problem.buffers[i];
    const ValidationResult result = judge(problem, buffer, solution.offsets[i], solution.height);
    if (result != kGood) return result;
    height = std::max(height, solution.offsets[i] + buffer.size);
  }
  if (height != solution.height) return kBadHeight;
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const auto lower = [&](std::size_t row) { return problem.buffers[row].lifespan.lower(); };
  std::sort(rows.begin(), rows.end(), [&](auto a, auto b) { return lower(a) < lower(b); });
  for (std::size_t i = 0; i < count; ++i) {
    const Buffer& buffer = problem.buffers[rows[i]];
    for (std::size_t j = i + 1; j < count && lower(rows[j]) < buffer.lifespan.upper(); ++j) {
      if (overlap(buffer, solution.offsets[rows[i]], problem.buffers[rows[j]],
                  solution.offsets[rows[j]])) {
        return kBadOverlap;
      }
    }
  }
  return kGood;
}

}  // namespace memplan_compat
}  // namespace minimalloc
