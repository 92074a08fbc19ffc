// Algorithm 1 of SOMAS and its variant 1opt: paths between operators, as sets of bits
// (appendix B).
//
// Two things differ from the print. A tensor without consumers counts as consumed by its producer:
// with no DestNodes it would be an ancestor of every tensor, those included that live while it is
// written. MaxNodes has the last of the consumers in each stream; as printed, they must be the
// last of all operators there, so that MaxNodes is mostly empty and everything safe.
#include <algorithm>

#include "streams/bits.h"
#include "streams/reach.h"
#include "streams/rules.h"
#include "util/invariants.h"

namespace memplan::streams {

namespace {

// AncNodes, by operator a row of bits.
class Ancestors {
 public:
  Ancestors(const StreamGraph& graph, const Places& at)
      : words_(graph.operators() / kBits + 1),
        bits_(static_cast<std::size_t>(words_ * graph.operators())) {
    for (OperatorIdx n = 0; n < graph.operators(); ++n) {
      Word* mine = bits_.data() + n * words_;
      at.for_each_awaited(n, [&](OperatorIdx before) {
        const Word* theirs = bits_.data() + before * words_;
        MEMPLAN_ASSERT(before < n);
        for (std::int64_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
        mine[before / kBits] |= Word{1} << (before % kBits);
      });
    }
  }
  bool has(OperatorIdx n, OperatorIdx before) const {
    const Word* mine = bits_.data() + n * words_;
    return ((mine[before / kBits] >> (before % kBits)) & 1) != 0;
  }

 private:
  std::int64_t words_;
  std::vector<Word> bits_;
};

// By tensor: the operators that must be over before its memory is free.
struct Nodes {
  std::vector<std::int64_t> begin;
  std::vector<OperatorIdx> node;
};

Nodes dest_nodes(const StreamGraph& graph) {
  Nodes result;
  for (TensorIdx t = 0; t < graph.tensors(); ++t) {
    result.begin.push_back(static_cast<std::int64_t>(result.node.size()));
    for_each_end(graph, t, [&](OperatorIdx n) { result.node.push_back(n); });
  }
  result.begin.push_back(static_cast<std::int64_t>(result.node.size()));
  return result;
}

Nodes max_nodes(const StreamGraph& graph, StreamIdx streams) {
  Nodes result;
  std::vector<OperatorIdx> last(streams, kNoOperator);
  for (TensorIdx t = 0; t < graph.tensors(); ++t) {
    result.begin.push_back(static_cast<std::int64_t>(result.node.size()));
    for_each_end(graph, t, [&](OperatorIdx n) {
      OperatorIdx& known = last[graph.stream[n]];
      known = std::max(known, n);  // in a stream, numbers ascend
    });
    for_each_end(graph, t, [&](OperatorIdx n) {
      OperatorIdx& known = last[graph.stream[n]];
      if (known != kNoOperator) result.node.push_back(known);
      known = kNoOperator;
    });
  }
  result.begin.push_back(static_cast<std::int64_t>(result.node.size()));
  return result;
}

UnsafePairs algorithm_1(const StreamGraph& graph, const Ancestors& ancestors, const Nodes& nodes) {
  const auto is_ancestor = [&](TensorIdx t, TensorIdx of) {
    const OperatorIdx* const all = nodes.node.data();
    return std::all_of(all + nodes.begin[t], all + nodes.begin[t + 1],
                       [&](OperatorIdx n) { return ancestors.has(graph.producer[of], n); });
  };
  PairSet unsafe(graph.tensors());
  for (TensorIdx t1 = 0; t1 < graph.tensors(); ++t1) {
    for (TensorIdx t2 = t1 + 1; t2 < graph.tensors(); ++t2) {
      if (is_ancestor(t1, t2) || is_ancestor(t2, t1)) unsafe.remove(t1, t2);
    }
  }
  return unsafe.rows();
}

}  // namespace

UnsafePairs by_ancestor_tensors(const StreamGraph& graph) {
  const Places at = places(graph);
  return algorithm_1(graph, Ancestors(graph, at), dest_nodes(graph));
}

UnsafePairs by_ancestor_tensors_opt(const StreamGraph& graph) {
  const Places at = places(graph);
  return algorithm_1(graph, Ancestors(graph, at), max_nodes(graph, at.streams));
}

}  // namespace memplan::streams
