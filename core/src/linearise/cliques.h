// The maximal cliques of a chordal graph, as a forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "linearise/relation.h"

namespace memplan::intervals {

using CliqueIdx = std::int32_t;
constexpr CliqueIdx kNoClique = -1;

// In this forest the cliques of a vertex are connected, and the vertices that two joined cliques
// share separate the vertices on either side.
struct CliqueForest {
  std::vector<std::vector<Vertex>> members;  // of each clique, those shared with its parent first
  std::vector<std::size_t> shared;           // how many these are
  std::vector<CliqueIdx> parent;             // an earlier clique, or kNoClique

  CliqueIdx count() const { return static_cast<CliqueIdx>(members.size()); }
};

// The vertices in the order of LexBFS, a breadth-first search that continues with the vertex whose
// visited neighbours came first, compared lexicographically. Where the stopper ends it, the order
// is any.
std::vector<Vertex> lex_bfs(const Graph& graph, Stopper& stopper);

// The cliques are in the order in which LexBFS completes the first vertex of each. Returns nothing
// if the graph is not chordal (some cycle of four or more vertices has no chord), or where the
// stopper ends it.
std::optional<CliqueForest> maximal_cliques(const Graph& graph, Stopper& stopper);

}  // namespace memplan::intervals
