// The lengths of restarts.
#pragma once

#include <cstdint>

namespace memplan {

// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... from index 0 (Luby, Sinclair and Zuckerman, 1993).
inline std::int64_t luby(std::int64_t index) {
  std::int64_t size = 1, value = 1;
  while (size < index + 1) {
    size = 2 * size + 1;
    value *= 2;
  }
  while (size - 1 != index) {
    size = (size - 1) / 2;
    value /= 2;
    index %= size;
  }
  return value;
}

}  // namespace memplan
