// Cliques for conflicts that no common time explains.
//
// The propagators think in cliques: items of which no two share an address. Those that are live at
// one time are cliques without further thought. Listed conflicts make them larger, and are to be in
// cliques of their own: few and large ones, since a large clique says all that its parts say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/types.h"
#include "prover/halt.h"

namespace memplan::prover {

using ItemSet = std::vector<std::int32_t>;  // sorted

// Of some sets, those that no other one contains; at least two items each. In the same order.
std::vector<ItemSet> maximal(const std::vector<ItemSet>& sets, std::size_t items);

// A graph of conflicts, and the sizes of its items.
struct ConflictGraph {
  const std::vector<Bytes>& size;
  std::vector<char> joined;  // items x items

  bool conflict(std::int32_t u, std::int32_t v) const {
    return joined[static_cast<std::size_t>(u) * size.size() + v] != 0;
  }
};

// The live sets, grown to maximal cliques, and behind them cliques for the listed pairs that are in
// none. Not for all of them, if there are very many: a pair may go without a clique. May throw
// Halted.
std::vector<ItemSet> cover(const ConflictGraph& graph, const std::vector<ItemSet>& live,
                           const std::vector<std::pair<std::int32_t, std::int32_t>>& listed,
                           const Halt& halt = {});

}  // namespace memplan::prover
