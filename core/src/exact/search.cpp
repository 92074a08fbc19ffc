#include "exact/search.h"

#include <algorithm>

#include "util/random.h"

namespace memplan::exact {

void best_first(std::vector<Option>& options) {
  std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.key != b.key ? a.key > b.key : a.id < b.id;
  });
}

double unit_interval(std::uint64_t x) { return static_cast<double>(mix(x) >> 11) * 0x1p-53; }

}  // namespace memplan::exact
