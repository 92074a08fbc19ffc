// Which operators run before which, as one number for each stream instead of a set of operators.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "memplan/streams.h"

namespace memplan::streams {

constexpr OperatorIdx kNoOperator = -1;

// The places of operators in their streams, and the operators that they wait for.
struct Places {
  StreamIdx streams = 0;
  std::vector<std::int32_t> place;   // by operator: 1, 2, ... in its stream, as in SOMAS
  std::vector<std::int32_t> length;  // by stream: the place of its last operator, or 0
  std::vector<OperatorIdx>
      previous;  // by operator: the one before it in its stream, or kNoOperator
  std::vector<std::int64_t> in_begin;  // operator n waits for in[in_begin[n] ..], by its arcs
  std::vector<OperatorIdx> in;

  // Calls `visit` with every operator that an operator waits for directly.
  template <typename Visit>
  void for_each_awaited(OperatorIdx n, Visit visit) const {
    if (previous[n] != kNoOperator) visit(previous[n]);
    std::for_each(in.data() + in_begin[n], in.data() + in_begin[n + 1], visit);
  }
};

// Numbers by row and stream.
class Table {
 public:
  Table(std::int64_t rows, StreamIdx streams, std::int32_t value)
      : streams_(streams), cells_(static_cast<std::size_t>(rows) * streams, value) {}

  std::int32_t* row(std::int64_t row) { return cells_.data() + row * streams_; }
  const std::int32_t* row(std::int64_t row) const { return cells_.data() + row * streams_; }
  std::vector<std::int32_t> release() && { return std::move(cells_); }

 private:
  std::int64_t streams_;
  std::vector<std::int32_t> cells_;
};

Places places(const StreamGraph& graph);

// MaxAncId: the place of the last operator of a stream that is over before n begins, or 0. The
// number describes all ancestors in the stream, since the operators before that one are over, too.
Table latest_ancestors(const StreamGraph& graph, const Places& places);

// The mirror image: the place of the first operator of a stream that begins after n is over, or
// its length + 1.
Table first_descendants(const StreamGraph& graph, const Places& places);

// Whether `n` runs before `m` in every execution; `latest` are the latest ancestors.
inline bool runs_before(const StreamGraph& graph, const Places& places, const Table& latest,
                        OperatorIdx n, OperatorIdx m) {
  return places.place[n] <= latest.row(m)[graph.stream[n]];
}

// Calls `visit` with the operators that end the life of a tensor: its consumers, or else its
// producer.
template <typename Visit>
void for_each_end(const StreamGraph& graph, TensorIdx t, Visit visit) {
  const OperatorIdx* const begin = graph.consumer.data() + graph.consumer_begin[t];
  const OperatorIdx* const end = graph.consumer.data() + graph.consumer_begin[t + 1];
  if (begin == end) visit(graph.producer[t]);
  std::for_each(begin, end, visit);
}

// Throws std::invalid_argument with the sentence of check(), if there is one.
void require_good(const StreamGraph& graph);

}  // namespace memplan::streams
