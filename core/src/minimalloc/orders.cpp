#include "minimalloc/orders.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
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

std::vector<Bytes> section_totals(const Items& items) {
  std::vector<Bytes> total(static_cast<std::size_t>(items.section_count), 0);
  for (const Span& span : items.spans) {
    for (SectionIdx s = span.first; s <= span.last; ++s) total[s] += span.upper - span.lower;
  }
  return total;
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
              const std::vector<Bytes>& total, ItemIdx i) {
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
      return fullest_section(items, total, i);
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

std::vector<std::int32_t> static_ranks(const Problem& problem, const Items& items,
                                       const Overlaps& overlaps, const std::string& order) {
  const std::vector<Bytes> total = section_totals(items);
  const std::size_t width = order.size();
  std::vector<double> keys;
  keys.reserve(items.size.size() * width);
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (const char key : order) {
      keys.push_back(key_of(key, problem, items, overlaps, total, i));
    }
  }
  std::vector<ItemIdx> sorted(items.size.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&keys, width](ItemIdx a, ItemIdx b) {
    const auto row_a = keys.begin() + static_cast<std::ptrdiff_t>(a * width);
    const auto row_b = keys.begin() + static_cast<std::ptrdiff_t>(b * width);
    const auto end_a = row_a + static_cast<std::ptrdiff_t>(width);
    const auto end_b = row_b + static_cast<std::ptrdiff_t>(width);
    return std::lexicographical_compare(row_b, end_b, row_a, end_a);
  });
  std::vector<std::int32_t> rank(items.size.size());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    rank[sorted[k]] = static_cast<std::int32_t>(k);
  }
  return rank;
}

}  // namespace memplan
