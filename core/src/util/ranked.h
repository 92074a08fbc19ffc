// Sorts rows by a number. It is compiled once, for all callers that need no more, to keep the
// library small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan {

struct Ranked {
  std::int64_t key;
  std::int32_t row;
};

// Sorts by ascending key, and rows of equal key by ascending row.
void sort_ranked(Ranked* begin, Ranked* end);

template <typename KeyOf>
std::vector<Ranked> ranked(std::size_t count, KeyOf key_of) {
  std::vector<Ranked> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = static_cast<std::int32_t>(i);
    rows[i] = {key_of(row), row};
  }
  sort_ranked(rows.data(), rows.data() + rows.size());
  return rows;
}

}  // namespace memplan
