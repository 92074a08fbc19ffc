#include <algorithm>
#include <limits>
#include <sstream>
#include <utility>

#include "memplan/streams.h"
#include "streams/reach.h"
#include "util/failure.h"

// Each rule returns an empty string, or the sentence that check() returns, and relies on those
// before it.

namespace memplan {

namespace {

constexpr std::int64_t kMaxCells = std::int64_t{1} << 30;  // 4 GiB for a table of reachability

template <typename... Parts>
std::string sentence_of(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

std::string check_sizes(const StreamGraph& graph) {
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  if (graph.stream.size() > kMost || graph.producer.size() > kMost) {
    return sentence_of("at most ", kMost, " operators and tensors are supported");
  }
  const std::size_t rows = graph.producer.size() + 1;
  if (graph.consumer_begin.size() != rows) {
    return sentence_of("consumer_begin has ", graph.consumer_begin.size(), " rows, but must have ",
                       rows);
  }
  const auto count = static_cast<std::int64_t>(graph.consumer.size());
  for (std::size_t t = 0; t + 1 < rows; ++t) {
    if (graph.consumer_begin[t] > graph.consumer_begin[t + 1]) {
      return sentence_of("consumer_begin decreases after tensor ", t);
    }
  }
  if (graph.consumer_begin.front() != 0 || graph.consumer_begin.back() != count) {
    return sentence_of("consumer_begin must go from 0 to ", count);
  }
  return {};
}

std::string check_operators(const StreamGraph& graph) {
  const OperatorIdx n = graph.operators();
  StreamIdx streams = 0;
  for (OperatorIdx i = 0; i < n; ++i) {
    if (graph.stream[i] < 0 || graph.stream[i] >= n) {
      return sentence_of("operator ", i, " is on stream ", graph.stream[i],
                         ", but must be on one from 0 to ", n - 1);
    }
    streams = std::max(streams, graph.stream[i] + 1);
  }
  const auto cells = static_cast<std::int64_t>(n) * streams;
  if (cells > kMaxCells) {
    return sentence_of(n, " operators on ", streams,
                       " streams are too many: the product may be at most ", kMaxCells);
  }
  for (const Arc& arc : graph.arcs) {
    if (arc.from < 0 || arc.from >= arc.to || arc.to >= n) {
      return sentence_of("an arc goes from operator ", arc.from, " to ", arc.to,
                         ", but must go from a lower to a higher one below ", n);
    }
  }
  for (const std::vector<OperatorIdx>* column : {&graph.producer, &graph.consumer}) {
    for (const OperatorIdx i : *column) {
      if (i < 0 || i >= n) return sentence_of("a tensor names operator ", i, " of ", n);
    }
  }
  return {};
}

std::string check_consumers(const StreamGraph& graph) {
  using namespace streams;
  const Places at = places(graph);
  const Table latest = streams::latest_ancestors(graph, at);
  for (TensorIdx t = 0; t < graph.tensors(); ++t) {
    const OperatorIdx producer = graph.producer[t];
    const OperatorIdx* const last = graph.consumer.data() + graph.consumer_begin[t + 1];
    for (const OperatorIdx* consumer = graph.consumer.data() + graph.consumer_begin[t];
         consumer != last; ++consumer) {
      if (*consumer == producer || runs_before(graph, at, latest, producer, *consumer)) continue;
      return sentence_of("tensor ", t, " is consumed by operator ", *consumer,
                         ", which does not wait for its producer ", producer);
    }
  }
  return {};
}

}  // namespace

std::string check(const StreamGraph& graph) {
  for (const auto rule : {check_sizes, check_operators, check_consumers}) {
    if (std::string fault = rule(graph); !fault.empty()) return fault;
  }
  return {};
}

std::vector<std::int32_t> latest_ancestors(const StreamGraph& graph) {
  streams::require_good(graph);
  return streams::latest_ancestors(graph, streams::places(graph)).release();
}

namespace streams {

void require_good(const StreamGraph& graph) {
  if (const std::string fault = check(graph); !fault.empty()) fail(fault);
}

}  // namespace streams

}  // namespace memplan
