// The pairs of buffers that conflict, whether by lifetimes or beyond them, as a graph, and the
// maximal cliques of a chordal graph, as a forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memplan/budget.h"
#include "memplan/problem.h"

namespace memplan::intervals {

using Vertex = BufferIdx;

// Row v has the neighbours of v, in any order.
struct Graph {
  std::vector<std::int64_t> begin;
  std::vector<Vertex> other;

  Vertex count() const { return static_cast<Vertex>(begin.size()) - 1; }
  const Vertex* first(Vertex v) const { return other.data() + begin[v]; }
  const Vertex* last(Vertex v) const { return other.data() + begin[v + 1]; }
};

// Returns nothing if there are more than `most_pairs`, or where the stopper ends it. The problem
// must not have gaps.
std::optional<Graph> conflict_graph(const Problem& problem, std::int64_t most_pairs,
                                    Stopper& stopper);

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
