// The rules of safety behind unsafe_pairs(), each for a graph that is well formed.
#pragma once

#include "memplan/streams.h"

namespace memplan::streams {

UnsafePairs by_runs(const StreamGraph& graph);                  // ours
UnsafePairs by_ancestor_tensors(const StreamGraph& graph);      // Algorithm 1 of SOMAS
UnsafePairs by_ancestor_tensors_opt(const StreamGraph& graph);  // Algorithm 1opt
UnsafePairs by_stream_graph(const StreamGraph& graph);          // Algorithms 2 to 5

}  // namespace memplan::streams
