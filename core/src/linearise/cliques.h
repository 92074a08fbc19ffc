// The maximal cliques of a chordal graph, and how they hang together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "linearise/relation.h"

namespace memplan::intervals {

using CliqueIdx = std::int32_t;
constexpr CliqueIdx kNoClique = -1;

// A forest. The cliques that a vertex is in hang together in it, and what two that are joined have
// in common parts the vertices on either side.
struct CliqueForest {
  std::vector<std::vector<Vertex>> members;  // of each clique, those shared with its parent first
  std::vector<std::size_t> shared;           // how many these are
  std::vector<CliqueIdx> parent;             // an earlier clique, or kNoClique

  CliqueIdx count() const { return static_cast<CliqueIdx>(members.size()); }
};

// The vertices as a breadth-first search takes them that goes on with the one whose visited
// neighbours came first (LexBFS): the first difference counts. In any order where the stopper ends
// it.
std::vector<Vertex> lex_bfs(const Graph& graph, Stopper& stopper);

// In the order in which LexBFS completes the first vertex of each. Nothing if the graph is not
// chordal: some cycle of four or more vertices has no shortcut. Nor where the stopper ends it.
std::optional<CliqueForest> maximal_cliques(const Graph& graph, Stopper& stopper);

}  // namespace memplan::intervals
