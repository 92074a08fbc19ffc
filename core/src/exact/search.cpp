#include "exact/search.h"

#include <cstring>
#include <limits>

#include "util/invariants.h"
#include "util/random.h"

namespace memplan::exact {

std::int64_t descending(double value) {
  static_assert(sizeof(double) == sizeof(std::int64_t) && std::numeric_limits<double>::is_iec559);
  MEMPLAN_ASSERT(value > 0);
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return -bits;
}

double unit_interval(std::uint64_t x) { return static_cast<double>(mix(x) >> 11) * 0x1p-53; }

}  // namespace memplan::exact
