#include "prover/clique_cover.h"

#include <algorithm>
#include <numeric>

#include "util/invariants.h"

namespace memplan::prover {

namespace {

// Work in propagation grows with the members of all cliques. With so many for an item, nearly all
// that cliques can infer is found.
constexpr std::size_t kCoversPerItem = 4;

// The pairs are in a heap, since most of them are never reached and need not be sorted.
struct WeighedPair {
  Bytes weight;
  std::size_t row;  // of the list; the lower comes first where weights are the same

  bool operator<(const WeighedPair& other) const {
    return weight != other.weight ? weight < other.weight : row > other.row;
  }
};

bool contains(const ItemSet& set, const ItemSet& subset) {
  return std::includes(set.begin(), set.end(), subset.begin(), subset.end());
}

// Grows a clique by the largest item that conflicts with all its members, since a heavy clique
// leaves the least room.
class Grower {
 public:
  explicit Grower(const ConflictGraph& graph) : graph_(graph), by_size_(graph.size.size()) {
    std::iota(by_size_.begin(), by_size_.end(), 0);
    std::stable_sort(by_size_.begin(), by_size_.end(), [&graph](std::int32_t u, std::int32_t v) {
      return graph.size[u] > graph.size[v];
    });
  }

  ItemSet grown(ItemSet clique) {
    candidates_ = by_size_;
    for (const std::int32_t i : clique) keep_neighbours(i);
    while (!candidates_.empty()) {
      clique.push_back(candidates_.front());
      keep_neighbours(clique.back());
    }
    MEMPLAN_ASSERT(is_clique(clique));
    std::sort(clique.begin(), clique.end());
    return clique;
  }

  bool is_clique(const ItemSet& set) const {
    for (auto u = set.begin(); u != set.end(); ++u) {
      for (auto v = u + 1; v != set.end(); ++v) MEMPLAN_ASSERT(graph_.conflict(*u, *v));
    }
    return true;
  }

 private:
  void keep_neighbours(std::int32_t i) {
    candidates_.erase(
        std::remove_if(candidates_.begin(), candidates_.end(),
                       [&](std::int32_t other) { return !graph_.conflict(i, other); }),
        candidates_.end());
  }

  const ConflictGraph& graph_;
  std::vector<std::int32_t> by_size_;
  std::vector<std::int32_t> candidates_;
};

}  // namespace

std::vector<ItemSet> maximal(const std::vector<ItemSet>& sets, std::size_t items) {
  std::vector<std::size_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sets[a].size() > sets[b].size(); });
  std::vector<std::size_t> kept;
  std::vector<std::vector<std::size_t>> kept_with(items);
  for (const std::size_t s : order) {
    if (sets[s].size() < 2) break;
    const auto& rivals = kept_with[sets[s].front()];
    if (std::any_of(rivals.begin(), rivals.end(),
                    [&](std::size_t k) { return contains(sets[k], sets[s]); })) {
      continue;
    }
    kept.push_back(s);
    for (const std::int32_t i : sets[s]) kept_with[i].push_back(s);
  }
  std::sort(kept.begin(), kept.end());
  std::vector<ItemSet> result;
  for (const std::size_t s : kept) result.push_back(sets[s]);
  return result;
}

std::optional<std::vector<ItemSet>> cover(
    const ConflictGraph& graph, const std::vector<ItemSet>& live,
    const std::vector<std::pair<std::int32_t, std::int32_t>>& listed, const Halt& halt) {
  const std::size_t n = graph.size.size();
  Grower grower(graph);
  std::vector<ItemSet> cliques;
  for (const ItemSet& set : live) {
    if (halt.look()) return std::nullopt;
    cliques.push_back(grower.grown(set));
  }
  cliques = maximal(cliques, n);

  std::vector<char> covered(n * n, 0);  // the smaller first
  const auto mark = [&](const ItemSet& clique) {
    for (auto u = clique.begin(); u != clique.end(); ++u) {
      for (auto v = u + 1; v != clique.end(); ++v) covered[*u * n + *v] = 1;
    }
  };
  for (const ItemSet& clique : cliques) mark(clique);
  // The heaviest come first, since their cliques infer most.
  std::vector<WeighedPair> heap;
  heap.reserve(listed.size());
  for (std::size_t k = 0; k < listed.size(); ++k) {
    heap.push_back({graph.size[listed[k].first] + graph.size[listed[k].second], k});
  }
  std::make_heap(heap.begin(), heap.end());
  const std::size_t most = cliques.size() + kCoversPerItem * n;
  while (!heap.empty() && cliques.size() < most) {
    if (halt.expired()) return std::nullopt;
    std::pop_heap(heap.begin(), heap.end());
    const auto& [u, v] = listed[heap.back().row];
    heap.pop_back();
    if (covered[std::min(u, v) * n + std::max(u, v)] != 0) continue;
    if (halt.look()) return std::nullopt;
    cliques.push_back(grower.grown({u, v}));
    mark(cliques.back());
  }
  return cliques;
}

}  // namespace memplan::prover
