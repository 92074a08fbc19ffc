// In which order should the operators of a program run, so that the largest number of bytes that
// are live at one time is as small as it can be?
//
// A state is a set of operators that have run, with all that they wait for: an ideal S. A storage
// is live in S if an operator that touches it has run (or it is given), and another one has still
// to run (or it is wanted). While `v` runs after S,
//
//     step(v, S) = live(S) + what v makes first + workspace(v) - what v writes in place
//
// is needed; the peak of an order is its largest step. All depends on sets and not on paths.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/types.h"

namespace memplan {

using StorageIdx = std::int32_t;

// `op` may write the storage `output` over `input`, if no other operator is still to touch `input`
// when `op` runs, it is not wanted, and `output` is no larger. It must make `output`: a pair whose
// output is given, or may be touched by another operator before, does not count.
struct InPlace {
  OperatorIdx op = 0;
  StorageIdx input = 0;
  StorageIdx output = 0;
};

// Operators are numbered in the given order, which is legal.
struct OrderProblem {
  std::vector<Bytes> workspace;          // by operator: what only it needs, while it runs
  std::vector<Arc> arcs;                 // each from a lower to a higher number; repeats do no harm
  std::vector<Bytes> size;               // by storage
  std::vector<std::uint8_t> given;       // by storage: there before the first operator
  std::vector<std::uint8_t> wanted;      // by storage: needed after the last operator
  std::vector<std::int64_t> user_begin;  // storages + 1 entries: storage s is touched by
  std::vector<OperatorIdx> user;         // user[user_begin[s] ..], ascending, each once
  std::vector<InPlace> in_place;

  OperatorIdx operators() const { return static_cast<OperatorIdx>(workspace.size()); }
  StorageIdx storages() const { return static_cast<StorageIdx>(size.size()); }
};

// One sentence on what is wrong, or an empty string. best_order() throws it as
// std::invalid_argument.
std::string check(const OrderProblem& problem);

// The peak of a legal order of all operators; for others it throws std::invalid_argument.
Bytes peak_of_order(const OrderProblem& problem, const std::vector<OperatorIdx>& order);

// Rules that can be switched off, to measure what each is worth. The peak that is proved never
// depends on them.
#define MEMPLAN_ORDER_RULES(OPTION)                                                     \
  OPTION(bool, segments, true,                                                          \
         "solve the stretches between operators that all others wait for alone")        \
  OPTION(bool, commits, true, "take an operator at once that leaves no more behind")    \
  OPTION(bool, valleys, true, "go on from a set of operators that leaves least behind") \
  OPTION(bool, delays, true, "leave out orders with an operator before it is of use")   \
  OPTION(bool, cuts, true, "bound every step by a minimum cut")                         \
  OPTION(bool, beams, true, "beam searches before the exact one")                       \
  OPTION(bool, backwards, true, "search from the end too")                              \
  OPTION(bool, windows, true, "improve windows of the best order, if a gap stays")      \
  OPTION(bool, narrowing, true,                                                         \
         "find what must run before what below the best peak, by minimum cuts")         \
  OPTION(bool, tidying, true, "last, move fewer operators than the search did")

struct OrderRules {
  MEMPLAN_ORDER_RULES(MEMPLAN_FIELD)
};

// The search runs in one thread and draws no random numbers: the same budget in states gives the
// same answer.
struct OrderOptions {
  Budget budget;  // nodes: states of all searches
  OrderRules rules;
  Stopper::Interrupt interrupt;
};

// A flow that bounds the step of one operator from below, whatever the order: see the network in
// docs/proofs.md. Its nodes are 0 for the source, 1 for the sink, 2 + u for operator u,
// then two for each storage: 2 + n + 2 s, where it becomes live, and the next, where it is over.
struct FlowArc {
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes amount = 0;
};

struct OrderBound {
  OperatorIdx op = -1;            // -1: no single operator gives the bound, but the whole search
  std::vector<OperatorIdx> done;  // the minimum cut: what has run before `op` in the cheapest case
  std::vector<FlowArc> flow;      // the maximum flow; arcs with no flow are left out
};

struct OrderResult {
  std::vector<OperatorIdx> order;
  Bytes peak = 0;
  Bytes bound = 0;                    // proved: no order has a smaller peak
  Status status = Status::kFeasible;  // kOptimal if the two are equal
  OrderBound certificate;
  std::int64_t states = 0;
  bool interrupted = false;
};

// The best order that is found within the budget. The given order is kept as far as possible: it
// is the answer itself if no other has a smaller peak.
OrderResult best_order(const OrderProblem& problem, const OrderOptions& options = {});

}  // namespace memplan
