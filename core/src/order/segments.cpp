#include "order/segments.h"

#include <algorithm>

namespace memplan::order {

std::vector<std::size_t> segments(const Program& program) {
  const OperatorIdx count = program.operators();
  // All operators before v lead to it if each of them has a follower at or before v, and so on
  // backwards for those after v.
  std::vector<std::uint8_t> fixed(program.workspace.size(), 1);
  OperatorIdx nearest = 0;  // the last of the first followers of all operators before v
  for (OperatorIdx v = 0; v < count; ++v) {
    if (nearest > v) fixed[v] = 0;
    const auto after = program.after[v];
    const auto first = std::min_element(after.begin(), after.end());
    nearest = std::max(nearest, first == after.end() ? count : *first);
  }
  nearest = count;
  for (OperatorIdx v = count; v-- > 0;) {
    if (nearest < v) fixed[v] = 0;
    const auto before = program.before[v];
    const auto last = std::max_element(before.begin(), before.end());
    nearest = std::min(nearest, last == before.end() ? -1 : *last);
  }
  std::vector<std::size_t> begins{0};
  for (OperatorIdx v = 0; v < count; ++v) {
    const auto place = static_cast<std::size_t>(v);
    if (fixed[v] == 0) continue;
    if (begins.back() < place) begins.push_back(place);
    begins.push_back(place + 1);
  }
  if (begins.back() < program.workspace.size()) begins.push_back(program.workspace.size());
  return begins;
}

}  // namespace memplan::order
