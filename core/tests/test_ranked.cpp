// Tests of the one sort by a number.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "check.h"
#include "util/ranked.h"

using namespace memplan;

namespace {

bool same(const std::vector<Ranked>& a, const std::vector<Ranked>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Ranked& x, const Ranked& y) {
    return x.key == y.key && x.row == y.row;
  });
}

// By key, then by row, by the library.
std::vector<Ranked> by_library(std::vector<Ranked> rows) {
  std::sort(rows.begin(), rows.end(), [](const Ranked& a, const Ranked& b) {
    return std::tie(a.key, a.row) < std::tie(b.key, b.row);
  });
  return rows;
}

}  // namespace

// Tests keys of every width and both signs, few and many, with rows that rise and that do not.
TEST(sorts_as_the_library_does) {
  std::mt19937_64 random(5);
  for (int count : {0, 1, 2, 31, 32, 33, 500, 3000}) {
    for (int shift = 0; shift < 64; shift += 7) {
      for (const bool rising : {true, false}) {
        std::vector<Ranked> rows;
        for (int row = 0; row < count; ++row) {
          const auto key = static_cast<std::int64_t>(random()) >> shift;
          rows.push_back({key - key % (1 + shift % 3 * 512), row});
        }
        if (!rising) std::shuffle(rows.begin(), rows.end(), random);
        const std::vector<Ranked> expected = by_library(rows);
        sort_ranked(rows.data(), rows.data() + rows.size());
        CHECK(same(rows, expected));
        sort_ranked(rows.data(), rows.data() + rows.size());
        CHECK(same(rows, expected));
      }
    }
  }
}

// Tests the least and the greatest keys beside each other, and rows of like keys.
TEST(sorts_extremes) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<Ranked> rows;
  for (std::int32_t row = 100; row > 0; --row) {
    rows.push_back({row % 3 == 0 ? kLeast : row % 3 == 1 ? 0 : kMost, row});
  }
  const std::vector<Ranked> expected = by_library(rows);
  sort_ranked(rows.data(), rows.data() + rows.size());
  CHECK(same(rows, expected));
}

TEST_MAIN
