// Programs on parallel streams: which tensors may be needed at the same time (SOMAS,
// sections 2 and 3).
//
//   stream 0    1 ------> 3        within a stream operators run one after the other;
//               | a       | e      between streams only arcs give an order:
//               v         v        2 waits for 1 and 6 for 3, but it is open whether
//   stream 1    2 -> 4 -> 6        4 or 3 runs first
//
// Two tensors are a safe pair if no execution needs both at once; only then may they share memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memplan/types.h"

namespace memplan {

using StreamIdx = std::int32_t;
using TensorIdx = std::int32_t;

// Operators are numbered in an order in which they could run one after the other. Those of a stream
// do run in this order, whether there are arcs between them or not.
//
// A tensor is needed from its producer, while it runs, to the last of its consumers, while it runs.
// A tensor without consumers is needed while its producer runs. The workspace of an operator is a
// tensor that it produces and consumes. A tensor that exists before the program, or is read after
// it, needs an operator that stands for the caller.
struct StreamGraph {
  std::vector<StreamIdx> stream;  // by operator: 0, 1, ... below the number of operators
  std::vector<Arc> arcs;          // each from a lower to a higher number; repeated arcs do no harm
  std::vector<OperatorIdx> producer;         // by tensor
  std::vector<std::int64_t> consumer_begin;  // tensors + 1 entries: tensor t has the consumers
  std::vector<OperatorIdx> consumer;         // consumer[consumer_begin[t] ..]

  OperatorIdx operators() const { return static_cast<OperatorIdx>(stream.size()); }
  TensorIdx tensors() const { return static_cast<TensorIdx>(producer.size()); }
};

// One sentence on what is wrong, or an empty string. An operator that consumes a tensor of another
// one must come after the producer, by arcs and streams. The functions below throw it as
// std::invalid_argument.
std::string check(const StreamGraph& graph);

// MaxAncId of SOMAS, by operator and stream: the place (1, 2, ...) of the last operator of the
// stream that is over before the operator begins, or 0. Row by row, operators x streams.
std::vector<std::int32_t> latest_ancestors(const StreamGraph& graph);

// All give the same pairs; the published ones are here to be compared with.
enum class SafetyRule {
  kRuns,                // ours, docs/streams.md
  kAncestorTensors,     // Algorithm 1
  kAncestorTensorsOpt,  // Algorithm 1opt
  kStreamGraph,         // Algorithms 2 to 5
};

// Every unsafe pair once: with the lower tensor, in ascending order.
struct UnsafePairs {
  std::vector<std::int64_t> row_begin;  // tensors + 1 entries: tensor t has the others
  std::vector<TensorIdx> other;         // other[row_begin[t] ..], each greater than t
};

UnsafePairs unsafe_pairs(const StreamGraph& graph, SafetyRule rule = SafetyRule::kRuns);

// Only the pairs that more than one stream costs: unsafe ones which would be safe, by their
// lifetimes, if operators ran one after the other by number. In both directions: a row has all
// others, in ascending order.
UnsafePairs unsafe_beyond_order(const StreamGraph& graph);

// Why two different tensors are a safe pair or are not.
struct Witness {
  bool safe = false;

  // Of a safe pair: which of the two is over when the other one begins, and for every stream that
  // consumes it a path from its last consumer there to the producer of the other. Each operator
  // of a path is a later one of the same stream, or at the end of an arc from the one before.
  TensorIdx first = 0;
  std::vector<std::vector<OperatorIdx>> paths;

  // Of an unsafe pair: all operators in an order in which they may run. Both tensors are needed
  // while those run that stand at begin .. end - 1: one, or two that run at the same time.
  std::vector<OperatorIdx> order;
  OperatorIdx begin = 0;
  OperatorIdx end = 0;
};

Witness witness(const StreamGraph& graph, TensorIdx a, TensorIdx b);

}  // namespace memplan
