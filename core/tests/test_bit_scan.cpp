// Tests of the zeros at either end of a word.
#include <cstdint>

#include "check.h"
#include "util/bit_scan.h"

using namespace memplan;

TEST(finds_the_bits_at_both_ends) {
  for (int low = 0; low < 64; ++low) {
    for (int high = low; high < 64; ++high) {
      const std::uint64_t word = std::uint64_t{1} << low | std::uint64_t{1} << high;
      CHECK_EQ(lowest_bit(word), low);
      CHECK_EQ(highest_bit(word), high);
      const std::uint64_t between = (word - (std::uint64_t{1} << low)) | word;
      CHECK_EQ(lowest_bit(between), low);
      CHECK_EQ(highest_bit(between), high);
    }
  }
}

TEST_MAIN
