// Finds cliques for conflicts that no common time explains.
//
// The propagators work on cliques: items of which no two share an address. Items that are live at
// one time are a clique. Listed conflicts make these larger, and those in none get cliques of their
// own: few and large ones, since a large clique infers all that its parts infer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memplan/types.h"
#include "prover/halt.h"

namespace memplan::prover {

using ItemSet = std::vector<std::int32_t>;  // sorted

// Returns the sets of at least two items that no other one contains, in the same order.
std::vector<ItemSet> maximal(const std::vector<ItemSet>& sets, std::size_t items);

// A graph of conflicts, and the sizes of its items.
struct ConflictGraph {
  const std::vector<Bytes>& size;
  std::vector<char> joined;  // items x items

  bool conflict(std::int32_t u, std::int32_t v) const {
    return joined[static_cast<std::size_t>(u) * size.size() + v] != 0;
  }
};

// Returns the live sets, grown to maximal cliques, and then cliques for the listed pairs that are
// in none. If there are very many pairs, some have no clique. Nothing if `halt` ends it.
std::optional<std::vector<ItemSet>> cover(
    const ConflictGraph& graph, const std::vector<ItemSet>& live,
    const std::vector<std::pair<std::int32_t, std::int32_t>>& listed, const Halt& halt = {});

}  // namespace memplan::prover
