// All pairs of buffers that conflict, whether by lifetimes or beyond them.
#pragma once

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

}  // namespace memplan::intervals
