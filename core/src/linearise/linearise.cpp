#include "memplan/linearise.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "linearise/cliques.h"
#include "linearise/path.h"
#include "linearise/relation.h"
#include "util/invariants.h"

namespace memplan {

using namespace intervals;

namespace {

// Whether those conflict by lifetimes in the one problem that conflict at all in the other. Of very
// many buffers it is taken on trust.
bool says_the_same(const Problem& problem, const Problem& result) {
  constexpr BufferIdx kMany = 256;
  const auto meet = [](const Problem& p, BufferIdx a, BufferIdx b) {
    return p.start[a] < p.end[b] && p.start[b] < p.end[a];
  };
  for (BufferIdx a = 0; a < problem.count() && problem.count() <= kMany; ++a) {
    for (BufferIdx b = 0; b < a; ++b) {
      if (problem.size[a] == 0 || problem.size[b] == 0) continue;
      const bool listed =
          std::binary_search(problem.conflicts.first(a), problem.conflicts.last(a), b);
      MEMPLAN_ASSERT(meet(result, a, b) == (listed || meet(problem, a, b)));
    }
  }
  return true;
}

}  // namespace
std::optional<Problem> linearised(const Problem& problem, Stopper& stopper,
                                  std::int64_t most_pairs) {
  if (!problem.gaps.empty()) return std::nullopt;
  const std::optional<Graph> graph = conflict_graph(problem, most_pairs, stopper);
  if (!graph) return std::nullopt;
  const std::optional<CliqueForest> forest = maximal_cliques(*graph, stopper);
  if (!forest) return std::nullopt;
  const std::vector<CliqueIdx> path = clique_path(*forest, problem.count(), stopper);
  if (stopper.look()) return std::nullopt;

  // The place of a clique is a time. Those of a buffer have to be a stretch without holes.
  Problem result = problem;
  result.conflicts = {};
  result.start.assign(problem.size.size(), forest->count());
  result.end.assign(problem.size.size(), 0);
  std::vector<CliqueIdx> cliques(problem.size.size(), 0);
  for (CliqueIdx time = 0; time < forest->count(); ++time) {
    for (const Vertex v : forest->members[path[time]]) {
      result.start[v] = std::min<Time>(result.start[v], time);
      result.end[v] = time + 1;
      ++cliques[v];
    }
  }
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (result.end[b] - result.start[b] != cliques[b]) return std::nullopt;
  }
  MEMPLAN_ASSERT(says_the_same(problem, result));
  return result;
}

}  // namespace memplan
