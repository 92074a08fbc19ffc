// The question of a search: pairs with a price, and pairs that are apart in every plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memplan/apart.h"
#include "memplan/problem.h"

namespace memplan::apart {

using PairIdx = std::int32_t;         // a row of Model::pairs
constexpr PairIdx kBarred = -1;       // stands for a pair that must lie apart
using Chosen = std::vector<PairIdx>;  // some pairs, ascending

// Another buffer that must lie apart, or that costs to share with.
struct Neighbour {
  BufferIdx other = 0;
  PairIdx pair = kBarred;
};

struct Model {
  Problem problem;        // with its capacity
  std::int64_t unit = 1;  // divides every cost
  // Of those that may meet or not; first < second, costs above 0, in units.
  std::vector<Penalty> pairs;
  std::int64_t fixed = 0;  // what pairs cost that meet in every plan, as both have pins
  std::int64_t total = 0;  // of all costs, in units
  // Every offset is a multiple of the step, so that all of a step is lost where a part is held.
  Bytes step = 1;
  std::vector<Bytes> size;  // rounded up to the step
  Bytes room = 0;           // the addresses that buffers may hold, rounded up as well
  // Whether some buffers hold parts of themselves, so that pairs may share some addresses only.
  bool has_windows = false;
  // By row, ascending; all rows are empty if there are too many buffers for rules about pairs. A
  // pair that shares some moment, but not with all its bytes, is in neither list.
  std::vector<std::vector<Neighbour>> neighbours;

  BufferIdx count() const { return problem.count(); }
  Bytes capacity() const { return *problem.capacity; }
  bool knows_pairs() const { return !neighbours.empty(); }
  // Puts the question for another capacity.
  void set_capacity(Bytes bytes);
};

// A sum, cut so that it can be one of the two again.
inline Bytes sum_of(Bytes a, Bytes b) { return std::min(a + b, kMaxBytes - 1); }

Model make_model(const Problem& problem, const std::vector<Penalty>& penalties);

// Whether two buffers hold a common address, whatever the time.
inline bool meet(const Problem& problem, const std::vector<Bytes>& offsets, BufferIdx a,
                 BufferIdx b) {
  return problem.size[a] > 0 && problem.size[b] > 0 && offsets[a] < offsets[b] + problem.size[b] &&
         offsets[b] < offsets[a] + problem.size[a];
}

// The pairs that meet, and what they cost in units.
Chosen met_pairs(const Model& model, const std::vector<Bytes>& offsets);
std::int64_t cost_of(const Model& model, const Chosen& pairs);

// All pairs but these.
Chosen all_but(const Model& model, const Chosen& pairs);

}  // namespace memplan::apart
