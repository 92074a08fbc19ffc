#include "solve/conflict_cliques.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
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

// A partition of the vertices into classes in a row. Unvisited vertices with the same visited
// neighbours are in one class, and classes that are visited sooner are in front.
class Refinement {
 public:
  explicit Refinement(Vertex count) : order_(count), place_(count), class_of_(count, 0) {
    std::iota(order_.begin(), order_.end(), 0);
    std::iota(place_.begin(), place_.end(), 0);
    classes_.push_back({0, count, 0});
  }

  Vertex visit(Vertex step) {
    MEMPLAN_ASSERT(classes_[class_of_[order_[step]]].begin ==
                   step);  // the first of all that are left
    const Vertex v = order_[step];
    ++classes_[class_of_[v]].begin;
    return v;
  }

  // Moves a vertex to the front of its class.
  void prefer(Vertex v) {
    Class& c = classes_[class_of_[v]];
    if (c.preferred == 0) touched_.push_back(class_of_[v]);
    swap(place_[v], c.begin + c.preferred++);
  }

  // Splits the preferred vertices of every class off as a class of their own.
  void part() {
    for (const std::int32_t i : touched_) {
      const Class whole = classes_[i];
      classes_[i].preferred = 0;
      if (whole.begin + whole.preferred == whole.end) continue;
      const auto fresh = static_cast<std::int32_t>(classes_.size());
      classes_.push_back({whole.begin, whole.begin + whole.preferred, 0});
      classes_[i].begin += whole.preferred;
      for (Vertex at = whole.begin; at < whole.begin + whole.preferred; ++at) {
        class_of_[order_[at]] = fresh;
      }
    }
    touched_.clear();
  }

  // Every vertex has its place and lies in its class (or before it, if it is visited).
  bool check_invariants() const {
    for (Vertex at = 0; at < static_cast<Vertex>(order_.size()); ++at) {
      MEMPLAN_ASSERT(place_[order_[at]] == at && at < classes_[class_of_[order_[at]]].end);
    }
    for (const Class& c : classes_) MEMPLAN_ASSERT(c.begin <= c.end && c.preferred == 0);
    return touched_.empty();
  }
  const std::vector<Vertex>& order() const { return order_; }

 private:
  struct Class {
    Vertex begin;  // rows of order_
    Vertex end;
    Vertex preferred;  // how many at its front
  };

  void swap(Vertex x, Vertex y) {
    std::swap(order_[x], order_[y]);
    place_[order_[x]] = x;
    place_[order_[y]] = y;
  }

  std::vector<Vertex> order_;
  std::vector<Vertex> place_;  // in order_
  std::vector<std::int32_t> class_of_;
  std::vector<Class> classes_;
  std::vector<std::int32_t> touched_;
};

// By vertex, the last of its neighbours that was visited before it, or -1.
std::vector<Vertex> last_before(const Graph& graph, const std::vector<Vertex>& step) {
  std::vector<Vertex> last(step.size(), -1);
  for (Vertex v = 0; v < graph.count(); ++v) {
    for (auto u = graph.first(v); u != graph.last(v); ++u) {
      if (step[*u] < step[v] && (last[v] < 0 || step[*u] > step[last[v]])) last[v] = *u;
    }
  }
  return last;
}

// Whether the neighbours visited before each vertex are a clique. It is enough that the last of
// them has all the others as neighbours (Rose, Tarjan and Lueker 1976). Returns false where the
// stopper ends it.
bool is_chordal(const Graph& graph, const std::vector<Vertex>& step,
                const std::vector<Vertex>& last, Stopper& stopper) {
  std::vector<std::vector<Vertex>> asking(step.size());  // by the last one
  for (Vertex v = 0; v < graph.count(); ++v) {
    if (last[v] >= 0) asking[last[v]].push_back(v);
  }
  std::vector<Vertex> neighbour_of(step.size(), -1);
  for (Vertex asked = 0; asked < graph.count(); ++asked) {
    if (asking[asked].empty()) continue;
    if (stopper.expired()) return false;
    for (auto u = graph.first(asked); u != graph.last(asked); ++u) neighbour_of[*u] = asked;
    for (const Vertex v : asking[asked]) {
      for (auto u = graph.first(v); u != graph.last(v); ++u) {
        if (step[*u] < step[asked] && neighbour_of[*u] != asked) return false;
      }
    }
  }
  return true;
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
    graph.other[static_cast<std::size_t>(next[a]++)] = b;
    graph.other[static_cast<std::size_t>(next[b]++)] = a;
  }
  MEMPLAN_ASSERT(static_cast<std::size_t>(graph.begin.back()) == graph.other.size());
  return graph;
}

std::vector<Vertex> lex_bfs(const Graph& graph, Stopper& stopper) {
  Refinement refinement(graph.count());
  std::vector<char> visited(static_cast<std::size_t>(graph.count()), 0);
  for (Vertex step = 0; step < graph.count() && !stopper.expired(); ++step) {
    const Vertex v = refinement.visit(step);
    visited[v] = 1;
    for (auto u = graph.first(v); u != graph.last(v); ++u) {
      if (visited[*u] == 0) refinement.prefer(*u);
    }
    refinement.part();
  }
  MEMPLAN_ASSERT(refinement.check_invariants());
  return refinement.order();
}

// If the neighbours visited before a vertex are the whole clique of the last of them, the vertex
// joins that clique; otherwise it begins a new one with them.
std::optional<CliqueForest> maximal_cliques(const Graph& graph, Stopper& stopper) {
  const std::vector<Vertex> order = lex_bfs(graph, stopper);
  if (stopper.stopped()) return std::nullopt;
  std::vector<Vertex> step(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) step[order[i]] = static_cast<Vertex>(i);
  const std::vector<Vertex> last = last_before(graph, step);
  if (!is_chordal(graph, step, last, stopper)) return std::nullopt;

  CliqueForest forest;
  std::vector<CliqueIdx> clique_of(order.size(), kNoClique);  // the clique that it joined or began
  for (const Vertex v : order) {
    if (stopper.expired()) return std::nullopt;
    std::vector<Vertex> members;
    for (auto u = graph.first(v); u != graph.last(v); ++u) {
      if (step[*u] < step[v]) members.push_back(*u);
    }
    const CliqueIdx parent = last[v] < 0 ? kNoClique : clique_of[last[v]];
    MEMPLAN_ASSERT(parent == kNoClique || members.size() <= forest.members[parent].size());
    if (parent != kNoClique && members.size() == forest.members[parent].size()) {
      clique_of[v] = parent;
      forest.members[parent].push_back(v);
      continue;
    }
    MEMPLAN_ASSERT(parent == kNoClique ? members.empty() : parent < forest.count());
    clique_of[v] = forest.count();
    forest.shared.push_back(members.size());
    forest.parent.push_back(parent);
    members.push_back(v);
    forest.members.push_back(std::move(members));
  }
  return forest;
}

}  // namespace memplan::intervals
