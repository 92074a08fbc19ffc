#include "util/ranked.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "util/bit_scan.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// A comparison sort of fewer rows takes less time than clearing the counters of a radix sort.
constexpr std::ptrdiff_t kFew = 32;
// Wider digits mean fewer passes, and more counters to clear in each.
constexpr std::ptrdiff_t kMany = 1000;
constexpr int kNarrow = 8;  // bits
constexpr int kWide = 11;

bool before(const Ranked& a, const Ranked& b) {
  return a.key != b.key ? a.key < b.key : a.row < b.row;
}

void insert_each(Ranked* begin, Ranked* end) {
  for (Ranked* at = begin; at < end; ++at) {
    const Ranked moved = *at;
    Ranked* to = at;
    for (; to > begin && before(moved, to[-1]); --to) *to = to[-1];
    *to = moved;
  }
}

// A pass moves the rows from one half to the other, sorted by one digit. It is stable.
struct Halves {
  Ranked* from;
  Ranked* to;
  std::ptrdiff_t count;
  bool by_row;

  // Maps what it sorts by to unsigned numbers in the same order.
  std::uint64_t bits(const Ranked& r) const {
    return by_row ? static_cast<std::uint32_t>(r.row)
                  : static_cast<std::uint64_t>(r.key) ^ (std::uint64_t{1} << 63);
  }

  void pass(int shift, int width) {
    std::uint32_t place[1 << kWide];
    std::fill(place, place + (1 << width), 0);
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    for (std::ptrdiff_t i = 0; i < count; ++i) ++place[(bits(from[i]) >> shift) & mask];
    std::uint32_t placed = 0;
    for (int digit = 0; digit < 1 << width; ++digit) placed += std::exchange(place[digit], placed);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      to[place[(bits(from[i]) >> shift) & mask]++] = from[i];
    }
    std::swap(from, to);
  }

  // Sorts by all digits in which any two rows differ.
  void sort() {
    const int width = count < kMany ? kNarrow : kWide;
    std::uint64_t differ = 0;
    for (std::ptrdiff_t i = 1; i < count; ++i) differ |= bits(from[i]) ^ bits(from[0]);
    while (differ != 0) {
      MEMPLAN_ASSERT(count > 1);
      const int shift = lowest_bit(differ);
      pass(shift, width);
      differ = shift + width < 64 ? differ >> (shift + width) << (shift + width) : 0;
    }
  }
};

}  // namespace

// Sorts digit by digit from the last one. Times are small, and sizes are multiples of a large
// number, so that few digits differ.
void sort_ranked(Ranked* begin, Ranked* end) {
  if (end - begin < kFew) return insert_each(begin, end);
  bool rising = true;
  bool sorted = true;
  for (const Ranked* at = begin + 1; at < end; ++at) {
    rising = rising && at[-1].row < at->row;
    sorted = sorted && at[-1].key <= at->key;
  }
  if (rising && sorted) return;
  std::vector<Ranked> spare(static_cast<std::size_t>(end - begin));
  Halves halves{begin, spare.data(), end - begin, true};
  if (!rising) halves.sort();
  halves.by_row = false;
  halves.sort();
  MEMPLAN_ASSERT(std::is_sorted(halves.from, halves.from + halves.count, before));
  if (halves.from != begin) std::copy(halves.from, halves.from + halves.count, begin);
}

}  // namespace memplan
