// A bound on the cost of re-runs in the given order, from several moments at once.
//
// Take any sequence that fits, with first runs in the given order. The moments t_0 < t_1 < ... are
// first runs of operators. Block i is what runs after t_(i-1), up to t_i; the last block ends with
// the sequence. Let
//
//     A[i,s]   storage s is live at moment i
//     R[i,k]   operator k runs again in block i, where i is 1 or more; for k = n + s, storage s
//              is moved back in it
//
// be 0 or 1. A copy that is read in block i, or live at its end, and whose storage was first made
// before the block, was made or moved back in the block, or is live at the moment before it:
//
//     x <= A[i-1,s] + R[i,maker of s] + R[i,n + s]
//
// where x is 1 for what a first run of block i reads and for what is wanted in the last block; it
// is R[i,k] if k reads s, and A[i,s]. What is live fits: w A[i] + workspace <= C. So the least cost
// of R under these rules is a bound, and so is, for any multipliers of 0 or more,
//
//     the sum of (left - right) * multiplier + cost of R,  each variable at its best
//
// which needs no search to check. Branching on variables gives cases; each has multipliers of its
// own. One moment alone is the cut of again/cut.h with what has run fixed, and its flow out of b_s
// is the multiplier of the reader.
//
// All numbers are whole: costs and multipliers are scaled by 2^scale, and a price p at a moment is
// p / 2^shift for each byte, rounded down for each storage and for what is left of C.
#pragma once

#include <cstdint>
#include <vector>

#include "again/cut.h"
#include "again/model.h"
#include "model/counter.h"

namespace memplan::again {

// Above any bound: no sequence fits.
constexpr std::int64_t kNothingFits = std::int64_t{1} << 62;

// A bound in units, with its proof.
struct OrderBound {
  std::int64_t bound = 0;
  OrderProof proof;
};

// Begins with one moment, and adds those at which the solution so far has too much. Ends early if
// the bound is `enough`.
OrderBound bound_by_moments(const Model& model, Bytes capacity, OperatorIdx first,
                            std::int64_t enough, Counter& counter);

// The proof of a cut whose moment has exactly the operators before it in the given order done.
OrderProof order_proof_of(const Model& model, const RecomputeProof& cut);

}  // namespace memplan::again
