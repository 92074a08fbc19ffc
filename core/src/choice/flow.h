// The linear relaxation as a flow through time: what a byte is worth at each moment.
//
// A byte of the memory goes from the first moment to the last. From t to t + 1 it is idle, for
// nothing, or it goes with an item, of which there are as many bytes as it holds, from its start to
// its end, for the worth of one byte of it. The flow that is worth most is the relaxation in which
// a part of an item can be chosen, and the potentials of its nodes are prices: a byte from t to
// t + 1 is worth what the potentials differ by.
#pragma once

#include <cstdint>
#include <vector>

#include "choice/items.h"
#include "model/counter.h"

namespace memplan::choice {

struct Relaxed {
  Table<std::int64_t> price;  // for a byte: scaled, 0 or more
  std::vector<Bytes> taken;   // by item: how many bytes of it the relaxation chooses
  // Where relax_units() goes on: shares by item, prices of bytes by memory and moment, of rivals by
  // the last of them, and how far prices move; empty if there is nothing yet.
  std::vector<double> share;
  Table<double> exact;
  std::vector<double> rival;
  double weight = 1;
  double worth = 0;  // of what is decided and what is taken, at most
  double work = 0;   // items and moments that were looked at
};

// Prices for what can be reached at each moment, of each memory by itself: as if an item in one did
// not keep the other items of its unit out. If the budget ends, they are still prices.
Relaxed relax(const Items& items, const std::vector<Fixed>& fixed, const Reach& reach,
              Counter& counter);

}  // namespace memplan::choice
