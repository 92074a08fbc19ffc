#include "memplan/linearise.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "solve/conflict_cliques.h"
#include "util/invariants.h"

namespace memplan {

namespace {

using intervals::CliqueForest;
using intervals::CliqueIdx;
using intervals::Graph;
using intervals::kNoClique;
using intervals::Vertex;

// The algorithm of Habib, McConnell, Paul and Viennot (2000, section 5). The cliques lie in classes
// whose order is known; within a class it is not.
//
//   [ A B C ] [ D E ] [ F ]      A vertex that is in C and in D has to have its cliques side by
//         *     *                side: in the class where they begin they go to the end, in the
//   [ A B ] [ C ] [ D ] [ E ]..  class where they end they go to the front.
//
// Such vertices are those shared by two cliques that are joined in the forest and lie in different
// classes. Where there are none left, a class can be read in either direction, and the clique that
// LexBFS came to last can be at one end of it.
class Row {
 public:
  Row(const CliqueForest& forest, Vertex vertices)
      : forest_(forest),
        cliques_of_(vertices),
        joined_(forest.members.size()),
        order_(forest.members.size()),
        place_(forest.members.size()),
        class_of_(forest.members.size(), 0),
        marked_(forest.members.size(), 0),
        used_(vertices, 0) {
    std::iota(order_.begin(), order_.end(), 0);
    std::iota(place_.begin(), place_.end(), 0);
    classes_.push_back({0, forest.count()});
    for (CliqueIdx c = 0; c < forest.count(); ++c) {
      for (const Vertex v : forest.members[c]) cliques_of_[v].push_back(c);
      if (forest.parent[c] == kNoClique) continue;
      joined_[c].push_back(c);  // an edge is named by its child
      joined_[forest.parent[c]].push_back(c);
    }
  }

  std::vector<CliqueIdx> refined(Stopper& stopper) {
    std::vector<std::int32_t> open = {0};  // classes that may have more than one clique
    while (!open.empty() && !stopper.expired()) {
      const std::int32_t i = open.back();
      if (classes_[i].end - classes_[i].begin <= 1) {
        open.pop_back();
        continue;
      }
      const auto known = static_cast<std::int32_t>(classes_.size());
      set_apart_last_of(i);
      while (!pivots_.empty() && !stopper.expired()) {
        const Vertex v = pivots_.back();
        pivots_.pop_back();
        gather_around(cliques_of_[v]);
        use_edges_of(cliques_of_[v]);
      }
      for (auto fresh = known; fresh < static_cast<std::int32_t>(classes_.size()); ++fresh) {
        open.push_back(fresh);
      }
    }
    MEMPLAN_ASSERT(check_invariants());
    return std::move(order_);
  }

 private:
  // Every clique has its place and its class, and the classes fill the row.
  bool check_invariants() const {
    CliqueIdx cliques = 0;
    for (const Class& c : classes_) cliques += c.end - c.begin;
    MEMPLAN_ASSERT(cliques == forest_.count());
    for (CliqueIdx at = 0; at < forest_.count(); ++at) {
      const Class& c = classes_[class_of_[order_[at]]];
      MEMPLAN_ASSERT(place_[order_[at]] == at && c.begin <= at && at < c.end);
      MEMPLAN_ASSERT(marked_[at] == 0);
    }
    return true;
  }
  struct Class {
    CliqueIdx begin;  // rows of order_
    CliqueIdx end;
  };

  void set_apart_last_of(std::int32_t i) {
    const Class whole = classes_[i];
    const CliqueIdx last =
        *std::max_element(order_.begin() + whole.begin, order_.begin() + whole.end);
    split_off(i, {last}, true);
    use_edges_of({last});
  }

  // Makes `cliques`, which are all those of one vertex, consecutive.
  void gather_around(const std::vector<CliqueIdx>& cliques) {
    const auto before = [this](CliqueIdx x, CliqueIdx y) {
      return classes_[class_of_[x]].begin < classes_[class_of_[y]].begin;
    };
    const auto [first, last] = std::minmax_element(cliques.begin(), cliques.end(), before);
    const std::int32_t left = class_of_[*first];
    const std::int32_t right = class_of_[*last];
    if (left == right) return;
    split_off(left, cliques, true);
    split_off(right, cliques, false);
  }

  // Splits the cliques that are in the class off, as a class behind or before the rest of it.
  void split_off(std::int32_t i, const std::vector<CliqueIdx>& cliques, bool behind) {
    Class& whole = classes_[i];
    CliqueIdx begin = whole.begin;
    CliqueIdx end = whole.end;
    for (const CliqueIdx c : cliques) {
      if (class_of_[c] == i) swap(place_[c], behind ? --end : begin++);
    }
    MEMPLAN_ASSERT(whole.begin <= begin && begin <= end && end <= whole.end);
    const Class part = behind ? Class{end, whole.end} : Class{whole.begin, begin};
    if (part.begin == whole.begin && part.end == whole.end) return;
    (behind ? whole.end : whole.begin) = behind ? end : begin;
    for (CliqueIdx at = part.begin; at < part.end; ++at) {
      class_of_[order_[at]] = static_cast<std::int32_t>(classes_.size());
    }
    classes_.push_back(part);
  }

  // The vertices that these cliques share with cliques of other classes become pivots, each once.
  void use_edges_of(const std::vector<CliqueIdx>& cliques) {
    for (const CliqueIdx c : cliques) marked_[c] = 1;
    for (const CliqueIdx c : cliques) {
      const auto leads_out = [&](CliqueIdx edge) {
        const bool out = marked_[edge] == 0 || marked_[forest_.parent[edge]] == 0;
        if (out) share(edge);
        return out;
      };
      std::vector<CliqueIdx>& edges = joined_[c];
      edges.erase(std::remove_if(edges.begin(), edges.end(), leads_out), edges.end());
    }
    for (const CliqueIdx c : cliques) marked_[c] = 0;
  }

  void share(CliqueIdx edge) {
    for (std::size_t i = 0; i < forest_.shared[edge]; ++i) {
      const Vertex v = forest_.members[edge][i];
      if (used_[v] == 0) pivots_.push_back(v);
      used_[v] = 1;
    }
  }

  void swap(CliqueIdx x, CliqueIdx y) {
    std::swap(order_[x], order_[y]);
    place_[order_[x]] = x;
    place_[order_[y]] = y;
  }

  const CliqueForest& forest_;
  std::vector<std::vector<CliqueIdx>> cliques_of_;  // by vertex
  std::vector<std::vector<CliqueIdx>> joined_;      // by clique: edges that are not used yet
  std::vector<CliqueIdx> order_;
  std::vector<CliqueIdx> place_;  // in order_
  std::vector<std::int32_t> class_of_;
  std::vector<Class> classes_;
  std::vector<char> marked_;    // by clique: of those at work
  std::vector<char> used_;      // by vertex
  std::vector<Vertex> pivots_;  // still to be gathered around
};

// An order of the cliques in which those of every vertex are consecutive, if there is one; else,
// or where the stopper ends it, some order. `vertices`: how many there are.
std::vector<CliqueIdx> clique_path(const CliqueForest& forest, Vertex vertices, Stopper& stopper) {
  return Row(forest, vertices).refined(stopper);
}

// Whether buffers conflict by lifetimes in `result` exactly where they conflict in `problem`. This
// is not checked for very many buffers.
bool has_same_conflicts(const Problem& problem, const Problem& result) {
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
  const std::optional<Graph> graph = intervals::conflict_graph(problem, most_pairs, stopper);
  if (!graph) return std::nullopt;
  const std::optional<CliqueForest> forest = intervals::maximal_cliques(*graph, stopper);
  if (!forest) return std::nullopt;
  const std::vector<CliqueIdx> path = clique_path(*forest, problem.count(), stopper);
  if (stopper.look()) return std::nullopt;

  // The place of a clique is a time. The times of a buffer have to be consecutive.
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
  MEMPLAN_ASSERT(has_same_conflicts(problem, result));
  return result;
}

}  // namespace memplan
