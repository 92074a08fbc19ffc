// Tests of the orders in which the greedy passes take the buffers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "greedy/orders.h"

using namespace memplan;

namespace {

// By falling keys, then by row, by the library.
std::vector<BufferIdx> by_library(std::vector<KeyedBuffer> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const KeyedBuffer& a, const KeyedBuffer& b) { return a.key > b.key; });
  std::vector<BufferIdx> order;
  for (const KeyedBuffer& row : rows) order.push_back(row.buffer);
  return order;
}

// A key of one kind: whole numbers of every width, fractions, both zeros, and the extremes.
double random_key(std::mt19937_64& random, int kind) {
  const auto bits = static_cast<std::int64_t>(random());
  switch (kind) {
    case 0:
      return 0;
    case 1:
      return static_cast<double>(bits % 5);
    case 2:
      return static_cast<double>(4096 * (bits % 1000) + 64);
    case 3:
      return static_cast<double>(bits >> 12);
    case 4:
      return static_cast<double>(bits);
    case 5:
      return static_cast<double>(bits % 1000) / 7;
    case 6:
      return bits % 3 == 0 ? -0.0 : bits % 3 == 1 ? 0.0 : 0.5;
    case 7:
      return bits % 3 == 0 ? -std::numeric_limits<double>::max() : static_cast<double>(bits % 2);
    default:
      return bits % 2 == 0 ? 0x1p62 : -0x1p62 + static_cast<double>(bits % 2048);
  }
}

}  // namespace

TEST(sorts_keys_as_the_library_does) {
  std::mt19937_64 random(3);
  Stopper stopper(std::numeric_limits<double>::infinity());
  for (int round = 0; round < 3000; ++round) {
    std::vector<KeyedBuffer> rows(round % 90);
    int kinds[4];
    for (int& kind : kinds) kind = static_cast<int>(random() % 9);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t k = 0; k < 4; ++k) rows[i].key[k] = random_key(random, kinds[k]);
      rows[i].buffer = static_cast<BufferIdx>(2 * i + 1);
    }
    CHECK(sorted(rows, stopper) == by_library(rows));
  }
}

// Tests what the profile computes only when it is asked against its definition.
TEST(profile_has_what_the_orders_ask_for) {
  Problem problem;
  problem.start = {0, 0, 2, 4, 5, 0};
  problem.end = {2, 6, 4, 6, 6, 3};
  problem.size = {8, 1, 4, 2, 3, 0};
  const Sections sections = sweep(problem);  // [0, 2): 9, [2, 4): 5, [5, 6): 6
  Stopper stopper(std::numeric_limits<double>::infinity());
  const Profile profile(problem, sections, stopper);
  CHECK_EQ(profile.max_load, 9);
  const double contention[] = {9, 9, 5, 6, 6, 0};
  const double breadth[] = {9, 9, 5, 6, 6, 0};
  const double rank[] = {0, 0, 2, 1, 1, 3};
  const double distance[] = {0, 0, 1, 2, 2, 3};
  const double conflicts[] = {1, 4, 1, 2, 2, 0};
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    CHECK_EQ(profile.contention[b], contention[b]);
    CHECK_EQ(profile.breadth(b), breadth[b]);
    CHECK_EQ(profile.breadth_rank(b), rank[b]);
    CHECK_EQ(profile.distance(b), distance[b]);
    CHECK_EQ(profile.conflicts(b), conflicts[b]);
  }
}

TEST_MAIN
