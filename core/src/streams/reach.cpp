#include "streams/reach.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::streams {

Places places(const StreamGraph& graph) {
  const OperatorIdx n = graph.operators();
  Places result;
  for (const StreamIdx s : graph.stream) result.streams = std::max(result.streams, s + 1);
  result.length.assign(result.streams, 0);
  result.place.reserve(n);
  result.previous.reserve(n);
  std::vector<OperatorIdx> last(result.streams, kNoOperator);
  for (OperatorIdx i = 0; i < n; ++i) {
    const StreamIdx s = graph.stream[i];
    result.place.push_back(++result.length[s]);
    result.previous.push_back(last[s]);
    last[s] = i;
  }

  result.in_begin.assign(static_cast<std::size_t>(n) + 1, 0);
  for (const Arc& arc : graph.arcs) ++result.in_begin[arc.to + 1];
  for (OperatorIdx i = 0; i < n; ++i) result.in_begin[i + 1] += result.in_begin[i];
  result.in.resize(graph.arcs.size());
  std::vector<std::int64_t> next(result.in_begin.begin(), result.in_begin.end() - 1);
  for (const Arc& arc : graph.arcs) {
    result.in[static_cast<std::size_t>(next[arc.to]++)] = arc.from;
  }
  MEMPLAN_ASSERT(result.in_begin.back() == static_cast<std::int64_t>(graph.arcs.size()));
  return result;
}

// Whether the ancestors of what an operator waits for are its own, and all of them come before it.
bool is_order(const StreamGraph& graph, const Places& places, const Table& latest) {
  for (OperatorIdx n = 0; n < graph.operators(); ++n) {
    const std::int32_t* mine = latest.row(n);
    for (StreamIdx s = 0; s < places.streams; ++s) {
      MEMPLAN_ASSERT(0 <= mine[s] && mine[s] <= places.length[s]);
    }
    MEMPLAN_ASSERT(mine[graph.stream[n]] == places.place[n] - 1);
    places.for_each_awaited(n, [&](OperatorIdx before) {
      MEMPLAN_ASSERT(before < n && runs_before(graph, places, latest, before, n));
      for (StreamIdx s = 0; s < places.streams; ++s)
        MEMPLAN_ASSERT(latest.row(before)[s] <= mine[s]);
    });
  }
  return true;
}
Table latest_ancestors(const StreamGraph& graph, const Places& places) {
  const StreamIdx streams = places.streams;
  Table table(graph.operators(), streams, 0);
  for (OperatorIdx n = 0; n < graph.operators(); ++n) {
    std::int32_t* mine = table.row(n);
    places.for_each_awaited(n, [&](OperatorIdx before) {
      const std::int32_t* theirs = table.row(before);
      for (StreamIdx s = 0; s < streams; ++s) mine[s] = std::max(mine[s], theirs[s]);
      std::int32_t& known = mine[graph.stream[before]];
      known = std::max(known, places.place[before]);
    });
  }
  MEMPLAN_ASSERT(is_order(graph, places, table));
  return table;
}

Table first_descendants(const StreamGraph& graph, const Places& places) {
  const StreamIdx streams = places.streams;
  Table table(graph.operators(), streams, 0);
  for (OperatorIdx n = 0; n < graph.operators(); ++n) {
    std::int32_t* mine = table.row(n);
    for (StreamIdx s = 0; s < streams; ++s) mine[s] = places.length[s] + 1;
  }
  // An operator that waits for n has a higher number, so that it has updated n already.
  for (OperatorIdx n = graph.operators() - 1; n >= 0; --n) {
    const std::int32_t* mine = table.row(n);
    places.for_each_awaited(n, [&](OperatorIdx before) {
      std::int32_t* theirs = table.row(before);
      for (StreamIdx s = 0; s < streams; ++s) theirs[s] = std::min(theirs[s], mine[s]);
      std::int32_t& known = theirs[graph.stream[n]];
      known = std::min(known, places.place[n]);
    });
  }
  return table;
}

}  // namespace memplan::streams
