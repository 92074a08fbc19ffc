// The network whose minimum cut bounds what re-runs cost, for one moment and one price of a byte.
//
// Take any sequence that fits, in whatever order, at the moment when `op` runs first. Let S be what
// has run, D the operators of S that run again later, and K what is present and not touched by
// `op`, and M what was there before and is moved back later. Then w(K) + w(touched by op) +
// workspace <= C, and every storage that was made in S and is still to be read (by an operator
// outside S, by one in D, or as it is wanted) is in K, touched by `op`, in M, or made by an
// operator in D: it is not there, so that its maker must run again or it must be moved back before
// that read. A storage of M needs nothing else to be there, and costs its move at least once. So
// for each price of a byte, which is 0 or more,
//
//     extra cost >= cost(D) + move(M)
//                >= cost(D) + move(M) + price * (w(K) + w(touched) + workspace - C)
//
// and the least of the right side over all S, D, K and M that obey these rules is a bound. All
// rules are about two things at a time, so that the least is a minimum cut, in which a storage that
// is needed and not made again is kept or moved, whichever costs less. On the side of the source:
//
//     u        operator u has run        y_k   k is not run again
//     a_s      storage s has begun       b_s   nothing is left that touches s
//
//     u -> p      infinite   what has run has had what it waits for
//     k -> y_k    cost(k)    k has run, and runs again
//     y_k -> b_s  price(s)   s is kept, or move(s) if that is less: its maker k does not run
//                            again, and it is still to be read; from k itself if it may not run
//                            again, from the source if s is given, from a_s if several operators
//                            write it
//     u -> a_s    infinite   for each user u of such a storage
//     b_s -> r    infinite   r is still to read s: the sink if s is wanted
//     b_s -> y_r  infinite   what runs again needs what it reads
//
// What `op` waits for is the source; `op` itself and what waits for it is the sink. Nodes are
// numbered for certificates: 0 the source, 1 the sink, 2 + u, then 2 + n + k for y_k, then
// 2 + 2 n + 2 s for a_s and 2 + 2 n + 2 s + 1 for b_s, where n operators are in the program.
//
// Branching decides for a storage too, as for an operator, that it is in M or that it is not. If it
// is not, price(s) has no other limit. If it is, its maker has run, the arc has no capacity, and
// the move is paid on an arc from the source to the sink.
//
// All numbers are whole. Costs are scaled by 2^scale; a price p means p / 2^shift for each byte,
// rounded down for each storage. The sum of the rounded prices of K is at most the price of what
// is left of C, rounded down, so that the bound stays valid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "again/model.h"
#include "util/flow.h"

namespace memplan::again {

// How costs and prices become whole numbers which no sum of them leaves: all costs and moves are
// below 2^53, the price of the capacity is at most 2^59, and an infinite capacity is 2^60, as is
// the most that comes in at the source. So a cut that fits is not met by that limit.
struct Scaling {
  std::int32_t scale = 0;
  std::int32_t shift = 0;
  std::int64_t highest_price = 0;
};

Scaling choose_scaling(const Model& model, Bytes capacity);

// The least number of bits that hold a number.
std::int32_t bits_of(std::int64_t number);

// price * bytes / 2^shift, rounded down; 2^60 at most.
std::int64_t price_of(std::int64_t price, Bytes bytes, std::int32_t shift);

// The side of the source of a minimum cut. As a line over prices: the cost of its re-runs and
// moves, scaled, and how many bytes too many it keeps.
struct CutSide {
  std::int64_t price = 0;
  std::int64_t value = 0;           // the least of the right side at this price, scaled
  std::int64_t cost = 0;            // of what runs again, scaled
  Bytes excess = 0;                 // what it keeps beyond the capacity
  std::vector<std::uint8_t> again;  // by run: has run and runs again, or is moved back
  std::vector<std::uint8_t> done;   // by operator: has run
};

class CutNetwork {
 public:
  static constexpr std::int32_t kEntry = 2;  // where the flow comes in: the source of the proof

  // The moment when `op` runs first, in any order.
  CutNetwork(const Model& model, const Scaling& scaling, OperatorIdx op);
  // The same, if exactly the operators of `done` have run before.
  CutNetwork(const Model& model, const Scaling& scaling, OperatorIdx op,
             const std::vector<std::uint8_t>& done);

  // Goes on with these decisions about runs.
  void decide(const std::vector<Decision>& decisions);

  // The minimum cut at a price. If `below` is the cut of the same decisions at a lower price, its
  // flow is gone on with.
  struct Solved {
    CutSide side;
    Flow flow;
    std::int64_t amount = 0;
  };
  Solved solve(std::int64_t price, Bytes capacity, const Solved* below = nullptr) const;

  // The least that can be kept, with what `op` touches and needs, if re-runs cost nothing.
  Bytes floor(std::vector<FlowArc>* flow) const;

  std::vector<FlowArc> named(const Flow& flow) const;

  // Whether it is open for `k` if it runs again.
  bool may_run_again(OperatorIdx k) const { return again_arc_[k] >= 0; }
  // Whether `u` may run before the moment, or after it.
  bool is_open(OperatorIdx u) const { return node_of_[u] > kEntry; }
  std::size_t arcs() const { return arcs_.size(); }

 private:
  struct CutArc {
    std::int32_t from;
    std::int32_t to;
    std::int64_t fixed;  // its capacity, beside the price of its bytes
    Bytes bytes;
    std::int64_t most;  // of the price of its bytes
  };

  void build();
  std::int32_t add_node(std::int64_t name);
  void add_arc(std::int32_t from, std::int32_t to, std::int64_t fixed);
  std::int32_t again_node(OperatorIdx k);
  void add_storage(StorageIdx s, std::vector<std::int32_t>& over_of);
  std::int64_t cost_of(OperatorIdx run) const { return model_.cost[run] << scaling_.scale; }
  std::int64_t move_limit(StorageIdx s) const;
  std::int64_t capacity_of(const CutArc& arc, std::int64_t price) const {
    return arc.fixed + std::min(price_of(price, arc.bytes, scaling_.shift), arc.most);
  }
  void decide_move(StorageIdx s, RunChoice choice);
  void read_side(CutSide& side, const Flow& flow, Bytes capacity) const;

  const Model& model_;
  Scaling scaling_;
  OperatorIdx op_;
  Bytes own_ = 0;                         // what is live whatever is kept
  std::vector<std::int32_t> node_of_;     // by operator
  std::vector<std::int32_t> again_node_;  // by operator: y_k, or -1
  std::vector<std::int32_t> again_arc_;   // by operator: k -> y_k, or -1
  std::vector<std::int32_t> keep_arc_;    // by storage: what keeps it, or -1
  std::vector<std::int64_t> names_;       // by node; -1: the entry, which is no node of the proof
  std::vector<CutArc> arcs_;
  std::size_t plain_arcs_ = 0;    // without those of decisions
  std::vector<StorageIdx> kept_;  // which have an arc
  std::vector<Decision> decided_;
};

}  // namespace memplan::again
