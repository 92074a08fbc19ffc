// Load rows: what sets of buffers, of which any two lie apart or pay, have to share.
//
// Let any two buffers of a set either lie apart in every plan, or have a penalty, and let z be 1
// for the pairs of it that meet. Put the buffers down one after the other. What buffer j covers
// again is at most the sum of min(s_i, s_j) z_ij over those before it, and all of them cover no
// more than the room R. So with b = (sum of sizes) - R,
//
//     sum over pairs of min(s_i, s_j, b) z_ij  >=  b
//
// holds in every plan. One such row stands for exponentially many sets of pairs of which one has to
// meet. As each z is a whole number, rounding makes a row stronger: with any d, f = b mod d > 0,
//
//     sum a_k z_k >= b   implies   sum (f floor(a_k / d) + min(f, a_k mod d)) z_k >= f ceil(b / d)
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "apart/model.h"
#include "model/counter.h"

namespace memplan::apart {

struct Term {
  PairIdx pair = 0;
  std::int64_t amount = 0;  // from 1 to Row::need
};

// At least `need` is the sum of the amounts of the pairs that meet.
struct Row {
  std::vector<Term> terms;
  std::int64_t need = 0;  // from 1 to 2^30
};

using Clique = std::vector<BufferIdx>;

// The row of a set; its need is 0 if the room is enough, and it has no terms but a need if the set
// fits into no plan.
Row load_row(const Model& model, const Clique& clique);

// Of a row and its roundings by its own amounts the one that is violated most, where met[k] says
// how far pair k meets, from 0 to 1. `work` grows by the terms that are looked at.
Row sharpest(const Row& row, const std::vector<double>& met, std::int64_t* work);

// A row that says that one of the pairs has to meet.
Row core_row(const Chosen& core);

// The buffers of a seed that go together, and more of them while the row of the set gets more
// violated, in the graph in which all pairs with penalties lie apart. `met(k)` says how far pair k
// meets, from 0 to 1, and `worth(b, gain)` which buffer comes next: the one of the greatest worth.
template <typename Amount, typename Met, typename Worth>
Clique grown(const Model& model, const Clique& seed, const Met& met, const Worth& worth) {
  std::vector<std::int32_t> common(model.size.size(), 0);  // neighbours in the clique
  std::vector<Amount> gain(model.size.begin(), model.size.end());
  Clique clique;
  const auto goes = [&](BufferIdx b) {
    return common[b] == static_cast<std::int32_t>(clique.size());
  };
  const auto add = [&](BufferIdx b) {
    for (const Neighbour& each : model.neighbours[b]) {
      ++common[each.other];
      if (each.pair == kBarred || gain[each.other] <= 0) continue;
      const Bytes shared = std::min(model.size[b], model.size[each.other]);
      gain[each.other] -= met(each.pair) * static_cast<Amount>(shared);
    }
    common[b] = -model.count();
    clique.push_back(b);
  };
  for (const BufferIdx b : seed) {
    if (goes(b)) add(b);
  }
  Clique open(model.size.size());  // those that may go, ascending: none comes back
  std::iota(open.begin(), open.end(), 0);
  while (true) {
    BufferIdx best = -1;
    Amount most = 0;
    const auto is_out = [&](BufferIdx b) { return !goes(b) || gain[b] <= 0; };
    open.erase(std::remove_if(open.begin(), open.end(), is_out), open.end());
    for (const BufferIdx b : open) {
      const Amount here = worth(b, gain[b]);
      if (here <= most) continue;
      most = here;
      best = b;
    }
    if (best < 0) return clique;
    add(best);
  }
}

// Heavy sets of buffers that do not fit into the room if only the chosen pairs may meet, each made
// larger while that makes its row more violated. The work is limited.
std::vector<Clique> find_cliques(const Model& model, const Chosen& met, Counter& counter);

}  // namespace memplan::apart
