#include "util/ranked.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "util/invariants.h"
#include "util/lowest_bit.h"

namespace memplan {

namespace {

// A comparison sort of fewer rows takes less time than clearing the counters of a radix sort.
constexpr std::ptrdiff_t kFew = 32;
constexpr int kDigit = 8;  // bits

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

// Maps keys to unsigned numbers in the same order.
std::uint64_t key_bits(const Ranked& r) {
  return static_cast<std::uint64_t>(r.key) ^ (std::uint64_t{1} << 63);
}

std::uint64_t row_bits(const Ranked& r) { return static_cast<std::uint32_t>(r.row); }

// A pass moves the rows from one half to the other, sorted by one digit. It is stable.
struct Halves {
  Ranked* from;
  Ranked* to;
  std::ptrdiff_t count;

  void pass(std::uint64_t (*bits)(const Ranked&), int shift) {
    std::ptrdiff_t place[1 << kDigit] = {};
    const auto digit = [bits, shift](const Ranked& r) {
      return (bits(r) >> shift) & ((1 << kDigit) - 1);
    };
    for (std::ptrdiff_t i = 0; i < count; ++i) ++place[digit(from[i])];
    std::ptrdiff_t placed = 0;
    for (std::ptrdiff_t& each : place) placed += std::exchange(each, placed);
    for (std::ptrdiff_t i = 0; i < count; ++i) to[place[digit(from[i])]++] = from[i];
    std::swap(from, to);
  }

  // Sorts by all digits in which any two rows differ.
  void sort(std::uint64_t (*bits)(const Ranked&)) {
    std::uint64_t differ = 0;
    for (std::ptrdiff_t i = 1; i < count; ++i) differ |= bits(from[i]) ^ bits(from[0]);
    while (differ != 0) {
      MEMPLAN_ASSERT(count > 1);
      const int shift = lowest_bit(differ);
      pass(bits, shift);
      differ = shift + kDigit < 64 ? differ >> (shift + kDigit) << (shift + kDigit) : 0;
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
  Halves halves{begin, spare.data(), end - begin};
  if (!rising) halves.sort(row_bits);
  halves.sort(key_bits);
  MEMPLAN_ASSERT(std::is_sorted(halves.from, halves.from + halves.count, before));
  if (halves.from != begin) std::copy(halves.from, halves.from + halves.count, begin);
}

}  // namespace memplan
