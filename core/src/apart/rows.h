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
// meet.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "apart/model.h"
#include "order/counter.h"

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

// A row that says that one of the pairs has to meet.
Row core_row(const Chosen& core);

// Heavy sets of buffers that do not fit into the room if only the chosen pairs may meet, each made
// larger while that makes its row more violated. The work is limited.
std::vector<Clique> find_cliques(const Model& model, const Chosen& met, order::Counter& counter);

}  // namespace memplan::apart
