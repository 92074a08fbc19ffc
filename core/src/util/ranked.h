// Rows in the order of a number. One sort, compiled once, for all who need no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memplan {

struct Ranked {
  std::int64_t key;
  std::int32_t row;
};

// The least key first, then the least row.
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
