#include "published/minimalloc/orders.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace memplan {

namespace {

double sections_of(const Items& items, ItemIdx i) {
  double count = 0;
  for (const Span* span = items.begin(i); span != items.end(i); ++span) {
    count += span->last - span->first + 1;
  }
  return count;
}

double fullest_section(const Items& items, const std::vector<Bytes>& total, ItemIdx i) {
  Bytes most = 0;
  for (const Span* span = items.begin(i); span != items.end(i); ++span) {
    most = std::max(most,
                    *std::max_element(total.begin() + span->first, total.begin() + span->last + 1));
  }
  return static_cast<double>(most);
}

// Keys are doubles because areas pass 2^63; two that differ only beyond 53 bits are a tie.
double key_of(char key, const Problem& problem, const Items& items, const Overlaps& overlaps,
              ItemIdx i) {
  const BufferIdx b = items.buffer[i];
  const auto start = static_cast<double>(problem.start[b]);
  const auto end = static_cast<double>(problem.end[b]);
  const auto size = static_cast<double>(problem.size[b]);
  switch (key) {
    case 'W':
      return end - start;
    case 'A':
      return size * (end - start);
    case 'T':
      return 0;  // of the moment: see sort
    case 'Z':
      return size;
    case 'L':
      return start;
    case 'U':
      return end;
    case 'C':
      return sections_of(items, i);
    case 'O':
      return static_cast<double>(overlaps.of[i].size());
    default:
      throw std::invalid_argument(std::string("minimalloc order: '") + key +
                                  "' is not one of the keys W, A, T, Z, L, U, C, O");
  }
}

}  // namespace

StaticOrder::StaticOrder(const Problem& problem, const Items& items, const Overlaps& overlaps,
                         const std::string& word)
    : items_(items), word_(word) {
  keys_.reserve(items.size.size() * word.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (const char key : word) keys_.push_back(key_of(key, problem, items, overlaps, i));
  }
}

void StaticOrder::sort(std::vector<ItemIdx>::iterator begin, std::vector<ItemIdx>::iterator end,
                       const std::vector<Bytes>& unallocated) {
  const std::size_t width = word_.size();
  if (word_.find('T') != std::string::npos) {
    for (auto at = begin; at != end; ++at) {
      const double fullest = fullest_section(items_, unallocated, *at);
      for (std::size_t k = 0; k < width; ++k) {
        if (word_[k] == 'T') keys_[*at * width + k] = fullest;
      }
    }
  }
  std::sort(begin, end, [this, width](ItemIdx a, ItemIdx b) {
    const double* row_a = keys_.data() + a * width;
    const double* row_b = keys_.data() + b * width;
    for (std::size_t k = 0; k < width; ++k) {
      if (row_a[k] != row_b[k]) return row_a[k] > row_b[k];
    }
    return a < b;
  });
}

}  // namespace memplan
