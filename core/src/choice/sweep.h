// The best choice, by a sweep over time.
//
// A label is what was decided about all items that begin before a moment. Two labels that hold the
// same items at that moment, and have the same refused sets still whole, have the same future: the
// one that is worth less goes. A label whose worth, with what the prices promise for all that comes
// later, is not above the best known choice goes too. The promise is the constant and the best
// profits of the units, less what decisions cost beyond that, and less what the label has left
// unused of the bytes that have a price: nothing later can use them.
//
// Where there are more labels than a limit, the least promising are dropped, and the greatest of
// their promises is kept: no choice is worth more than the best one found and that.
#pragma once

#include <cstdint>
#include <vector>

#include "choice/items.h"
#include "choice/prices.h"
#include "model/counter.h"

namespace memplan::choice {

struct Swept {
  bool is_whole = false;  // the sweep came to its end, and so what follows is proved
  // Scaled: what was dropped is not worth more; -1 if nothing was. All other choices with these
  // items fixed are not worth more than `best`, or than the choice that was found.
  std::int64_t promised = -1;
  bool is_better = false;  // than `best`
  std::vector<std::uint8_t> chosen;
  std::int64_t worth = 0;  // of it; not scaled
};

// The best choice that is worth more than `best` (not scaled), with at most `width` labels. The
// prices hold for any items that are fixed.
Swept sweep(const ChoiceProblem& problem, const Items& items, const std::vector<Fixed>& fixed,
            const Reach& reach, const Prices& prices, std::int64_t best, std::size_t width,
            Counter& counter);

// What a choice is worth; not scaled.
std::int64_t worth_of(const ChoiceProblem& problem, const std::vector<std::uint8_t>& chosen);

// The worth at most of a choice that is whole, not scaled, of which this is a bound; -1 if there is
// none.
std::int64_t rounded(const Items& items, std::int64_t scaled);

}  // namespace memplan::choice
