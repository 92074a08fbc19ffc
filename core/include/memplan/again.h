// Which operators of a program should run again, and which storages should be moved out of the
// memory for some time, so that it fits into a capacity and costs as little as it can?
//
// A sequence runs every operator at least once, the first time after all that it waits for. A read
// takes the latest copy of a storage. A copy is live from the run that makes it to its last read
// before the next run of its maker; the last copy of a wanted storage lives to the end. So any
// copy may be dropped at any time, if its maker may run again. While a run goes on,
//
//     load = live copies, with all that the operator reads and makes + its workspace
//
// is needed.
//
// A storage that may be moved has a run of its own, which brings it back: the storage left the
// memory after the last run before that which touched it, or before the first run if none did. So
// `n + s`, where n operators are in the program, is one more maker of storage s, which reads
// nothing. What is given must be there before the first run all the same, and what is wanted after
// the last one. A storage that no operator touches is never moved.
//
// The extra cost of a sequence is the cost of all runs beyond the first ones, and of all moves.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/order.h"
#include "memplan/plan.h"
#include "memplan/types.h"

namespace memplan {

struct RecomputeProblem {
  OrderProblem program;             // without in-place pairs
  std::vector<std::int64_t> cost;   // by operator, from 0 on; with all moves below 2^53
  std::vector<std::uint8_t> again;  // by operator: it may run more than once
  // By storage: the one operator that makes it, the first of its users; or -1 if it is given, or
  // several operators write it. It is not made again then: it lives from the first operator that
  // touches it (or from the start) to the last one, but for the time when it is moved out.
  std::vector<OperatorIdx> maker;
  std::vector<std::int64_t> move;  // by storage: out and back, from 0 on; -1 if it stays
};

// One sentence on what is wrong, or an empty string. The functions below throw it as
// std::invalid_argument.
std::string check(const RecomputeProblem& problem);

struct Load {
  Bytes peak = 0;
  std::int64_t extra = 0;
};

// The load and the extra cost of a sequence; for an illegal one it throws std::invalid_argument.
Load load_of(const RecomputeProblem& problem, const std::vector<OperatorIdx>& runs);

// Rules that can be switched off, to measure what each is worth. What is proved never depends on
// them.
#define MEMPLAN_RECOMPUTE_RULES(OPTION)                                                         \
  OPTION(bool, branching, true, "bound by whole re-runs: branch on what the cut cannot decide") \
  OPTION(bool, moments, true, "bound the given order by several moments")                       \
  OPTION(bool, guide, true, "drop first what the solution of the bound drops")                  \
  OPTION(bool, repair, true, "ruin and recreate parts of the best sequence")

struct RecomputeRules {
  MEMPLAN_RECOMPUTE_RULES(MEMPLAN_FIELD)
};

// The search runs in one thread, and all that it draws by chance is the same on every machine: the
// same budget in nodes gives the same answer.
struct RecomputeOptions {
  // Nodes: minimum cuts, and sequences that are tried; a try that looks at more than 2^18 slots is
  // several nodes, so that a node takes as long in a large program.
  Budget budget;
  bool free_order = true;  // first runs may leave the given order
  Stopper::Interrupt interrupt;
  RecomputeRules rules;
};

// What a leaf of the branching decides about one operator, with respect to the moment; or, for the
// first two, about the move `n + s`, which takes place again if storage s was there before the
// moment and is moved back after it.
enum class RunChoice : std::int32_t {
  kNotAgain = 0,  // it does not run both before the moment and again after it
  kAgain = 1,     // it runs before the moment, and again after it
  kAfter = 2,     // it does not run before the moment
  kBefore = 3,    // it runs before the moment
};

struct Decision {
  OperatorIdx op = 0;  // or a move
  RunChoice choice = RunChoice::kNotAgain;
};

// A flow in the network of the moment; its nodes are numbered as in again/cut.h.
struct CutLeaf {
  std::vector<Decision> decisions;  // from the root on
  std::int64_t price = 0;           // of a byte, in 2^-shift units of scaled cost
  std::vector<FlowArc> flow;        // arcs with no flow are left out
};

// Proves that no sequence that fits, in whatever order, has re-runs that cost less than the bound:
// the leaves are all cases, and the flow of each bounds the cost in its case.
struct RecomputeProof {
  OperatorIdx op = -1;    // the moment when it runs first; -1: the bound is 0
  std::int64_t unit = 1;  // divides the cost of every operator that may run again, and every move
  std::int32_t scale = 0;
  std::int32_t shift = 0;
  std::vector<CutLeaf> leaves;
};

// Variables of the bound for the given order, numbered with n operators and m storages: i (n + 2 m)
// + s, storage s is there at moment i; i (n + 2 m) + m + k, operator k runs again in block i.
struct OrderDecision {
  std::int32_t variable = 0;
  std::uint8_t value = 0;
};

// A multiplier of one rule of again/moments.h: what is needed in a block was made in it, or is
// there at the moment before.
struct OrderNeed {
  std::int32_t block = 0;
  std::int32_t variable = -1;  // that needs it, without its block; -1: first runs, or the end
  StorageIdx storage = 0;
  std::int64_t amount = 0;
};

// With costs of 0, a value above 0 proves that nothing fits in the case.
struct OrderLeaf {
  std::vector<OrderDecision> decisions;  // from the root on
  bool is_impossible = false;            // costs count as 0
  std::vector<std::int64_t> prices;      // by moment: of a byte, in 2^-shift units of scaled cost
  std::vector<OrderNeed> needs;
};

// Proves that no sequence that fits, with first runs in the given order, has re-runs that cost less
// than the order bound.
struct OrderProof {
  std::vector<OperatorIdx> moments;  // ascending; none: the bound is 0
  std::int64_t unit = 1;             // divides the cost of every operator that may run again
  std::int32_t scale = 0;
  std::int32_t shift = 0;
  std::vector<OrderLeaf> leaves;
};

struct RecomputeResult {
  std::vector<OperatorIdx> runs;  // and moves; empty if no sequence was found
  Bytes peak = 0;                 // of the runs
  std::int64_t extra = 0;         // of the runs
  std::int64_t bound = 0;         // proved: no sequence that fits has a smaller extra cost
  std::int64_t order_bound = 0;   // proved for sequences with first runs in the given order
  Status status = Status::kUnknown;
  Bytes floor = 0;                  // proved: no sequence has a smaller peak
  OperatorIdx floor_op = -1;        // the operator that needs so much, whatever is run again
  std::vector<FlowArc> floor_flow;  // in its network with costs of 0 and a price of 1 for a byte
  RecomputeProof certificate;       // of the bound
  OrderProof order_certificate;     // of the order bound, if it is above the bound
  std::int64_t nodes = 0;
  bool interrupted = false;
};

// The best sequence that is found within the capacity and the budget. It is the given order itself
// if that fits.
RecomputeResult recompute(const RecomputeProblem& problem, Bytes capacity,
                          const RecomputeOptions& options = {});

}  // namespace memplan
