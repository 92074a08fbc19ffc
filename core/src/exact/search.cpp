#include "exact/search.h"

#include <algorithm>

namespace memplan::exact {

void best_first(std::vector<Option>& options) {
  std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return a.key != b.key ? a.key > b.key : a.id < b.id;
  });
}

// SplitMix64: a fixed, portable source of keys and noise.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

double unit_interval(std::uint64_t x) { return static_cast<double>(mix(x) >> 11) * 0x1p-53; }

}  // namespace memplan::exact
