#include "linearise/relation.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan::intervals {

namespace {

// Calls visit(a, b) once for every pair, until it returns false.
template <typename Visit>
void for_each_pair(const Problem& problem, Visit visit) {
  const auto live = [&problem](BufferIdx b) { return problem.size[b] > 0; };
  const std::vector<Ranked> by_start =
      ranked(problem.size.size(), [&problem](BufferIdx b) { return problem.start[b]; });
  std::vector<BufferIdx> alive;
  for (const auto& [start, b] : by_start) {
    if (!live(b)) continue;
    const Time now = start;
    const auto over = [&](BufferIdx a) { return problem.end[a] <= now; };
    alive.erase(std::remove_if(alive.begin(), alive.end(), over), alive.end());
    for (const BufferIdx a : alive) {
      if (!visit(a, b)) return;
    }
    alive.push_back(b);
  }
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (!live(b)) continue;
    for (auto a = problem.conflicts.first(b); a != problem.conflicts.last(b) && *a < b; ++a) {
      const bool meet = problem.start[*a] < problem.end[b] && problem.start[b] < problem.end[*a];
      if (live(*a) && !meet && !visit(*a, b)) return;
    }
  }
}

}  // namespace

std::optional<Graph> conflict_graph(const Problem& problem, std::int64_t most_pairs,
                                    Stopper& stopper) {
  std::vector<std::pair<Vertex, Vertex>> pairs;
  bool given_up = false;
  for_each_pair(problem, [&](BufferIdx a, BufferIdx b) {
    given_up = static_cast<std::int64_t>(pairs.size()) == most_pairs || stopper.expired();
    if (!given_up) pairs.emplace_back(a, b);
    return !given_up;
  });
  if (given_up || stopper.look()) return std::nullopt;
  Graph graph;
  graph.begin.assign(problem.size.size() + 1, 0);
  for (const auto& [a, b] : pairs) {
    ++graph.begin[a + 1];
    ++graph.begin[b + 1];
  }
  for (std::size_t v = 1; v < graph.begin.size(); ++v) graph.begin[v] += graph.begin[v - 1];
  graph.other.resize(2 * pairs.size());
  std::vector<std::int64_t> next(graph.begin.begin(), graph.begin.end() - 1);
  for (const auto& [a, b] : pairs) {
    graph.other[next[a]++] = b;
    graph.other[next[b]++] = a;
  }
  MEMPLAN_ASSERT(static_cast<std::size_t>(graph.begin.back()) == graph.other.size());
  return graph;
}

}  // namespace memplan::intervals
