// Prices, and the bound that they prove.
//
// At each time, the sizes of the chosen items of a memory are at most its capacity C, and sharper,
// as in Reach. For every k, the sum of their counts floor((k + 1) * size / (C + 1)) is at most k:
// of items above C / 2 there is at most one, of items above C / 3 there are at most two. Each of
// these rules has a price at each moment, 0 or more. What an item is worth beyond what it pays, for
// its bytes and its counts while it is live, is its profit. No choice is worth more than
//
//     the price of all that there is of bytes and counts + for each unit, its best profits
//
// (Lagrangian relaxation). For the bytes of one memory alone, the best prices are those of the
// flow; from these on, prices are found by the subgradient method, and rounded to whole numbers,
// for which the sum is a bound whatever they are.
#pragma once

#include <cstdint>
#include <vector>

#include "choice/flow.h"
#include "choice/items.h"
#include "choice/units.h"

namespace memplan::choice {

// The rules that count items, for each memory: those of the dearest items are taken, and each label
// of a sweep has a count for each rule.
constexpr std::size_t kMostCounts = 6;

// At most `most` counts at each moment of a memory, and what one of them costs.
struct CountRule {
  Index memory;
  std::int64_t most;
  std::vector<std::int32_t> counts;  // by item; 0 for those of other memories
  std::vector<std::int64_t> price;   // by moment, scaled
};

struct Prices {
  Table<std::int64_t> byte;          // the price of a byte, scaled
  std::vector<CountRule> rules;      // with a price at some moment
  std::vector<std::int64_t> profit;  // by item: its worth, less what it pays
  std::int64_t constant = 0;         // the price of all that there is
  std::int64_t bound = 0;            // scaled
};

// The bound of prices if other items are decided.
std::int64_t bound_of(const Prices& prices, const Items& items, const std::vector<Fixed>& fixed,
                      const Units& units);

// Prices for what can be reached; in rounds, they approach the best ones towards a choice of this
// worth.
Prices find_prices(const Items& items, const std::vector<Fixed>& fixed, const Units& units,
                   const Reach& reach, const Relaxed& relaxed, std::int64_t reached,
                   std::size_t rounds, Counter& counter);

}  // namespace memplan::choice
