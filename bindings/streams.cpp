#include "memplan/streams.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "columns.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

StreamGraph make_graph(const Column<StreamIdx>& stream, const Column<OperatorIdx>& arc_from,
                       const Column<OperatorIdx>& arc_to, const Column<OperatorIdx>& producer,
                       const Column<std::int64_t>& consumer_begin,
                       const Column<OperatorIdx>& consumer) {
  if (arc_from.size() != arc_to.size()) {
    throw nb::value_error("arc_from and arc_to must have as many rows as each other");
  }
  StreamGraph graph;
  graph.stream = copied(stream);
  graph.arcs.resize(arc_from.size());
  for (std::size_t i = 0; i < graph.arcs.size(); ++i) graph.arcs[i] = {arc_from(i), arc_to(i)};
  graph.producer = copied(producer);
  graph.consumer_begin = copied(consumer_begin);
  graph.consumer = copied(consumer);
  return graph;
}

SafetyRule rule_of(const std::string& name) {
  if (name == "memplan") return SafetyRule::kRuns;
  if (name == "1") return SafetyRule::kAncestorTensors;
  if (name == "1opt") return SafetyRule::kAncestorTensorsOpt;
  if (name == "2") return SafetyRule::kStreamGraph;
  throw nb::value_error(("there is no algorithm " + name).c_str());
}

using Rows = std::pair<Array<std::int64_t, 1>, Array<TensorIdx, 1>>;

template <typename Compute>
Rows rows_of(Compute compute) {
  UnsafePairs pairs;
  {
    const nb::gil_scoped_release released;
    pairs = compute();
  }
  const std::size_t rows = pairs.row_begin.size();
  const std::size_t count = pairs.other.size();
  return {given(std::move(pairs.row_begin), {rows}), given(std::move(pairs.other), {count})};
}

Rows call_unsafe_pairs(const StreamGraph& graph, const std::string& algorithm) {
  const SafetyRule rule = rule_of(algorithm);
  return rows_of([&] { return unsafe_pairs(graph, rule); });
}

Rows call_unsafe_beyond_order(const StreamGraph& graph) {
  return rows_of([&] { return unsafe_beyond_order(graph); });
}

Array<std::int32_t, 2> call_latest_ancestors(const StreamGraph& graph) {
  std::vector<std::int32_t> cells = latest_ancestors(graph);
  const std::size_t rows = graph.stream.size();
  const std::size_t streams = rows == 0 ? 0 : cells.size() / rows;
  return given<std::int32_t, 2>(std::move(cells), {rows, streams});
}

}  // namespace

void bind_streams(nb::module_& m) {
  nb::class_<StreamGraph>(m, "StreamGraph", "Operators on streams, and tensors; columns, copied.")
      .def(
          "__init__",
          [](StreamGraph* self, const Column<StreamIdx>& stream,
             const Column<OperatorIdx>& arc_from, const Column<OperatorIdx>& arc_to,
             const Column<OperatorIdx>& producer, const Column<std::int64_t>& consumer_begin,
             const Column<OperatorIdx>& consumer) {
            new (self) StreamGraph(
                make_graph(stream, arc_from, arc_to, producer, consumer_begin, consumer));
          },
          "stream"_a, "arc_from"_a, "arc_to"_a, "producer"_a, "consumer_begin"_a, "consumer"_a)
      .def(
          "check", [](const StreamGraph& graph) { return check(graph); },
          "One sentence on what is wrong, or an empty string.");

  nb::class_<Witness>(m, "Witness", "Why two tensors are a safe pair, or are not.")
      .def_ro("safe", &Witness::safe)
      .def_ro("first", &Witness::first, "Of a safe pair: the tensor that is over first.")
      .def_ro("paths", &Witness::paths, "Of a safe pair: operators that wait for each other.")
      .def_ro("order", &Witness::order, "Of an unsafe pair: the operators as they may run.")
      .def_ro("begin", &Witness::begin, "Both are needed while order[begin:end] run.")
      .def_ro("end", &Witness::end);

  m.def("unsafe_pairs", &call_unsafe_pairs, "graph"_a, "algorithm"_a,
        "Row bounds and the other tensor of each pair, greater than its row and ascending, by "
        "algorithm memplan, 1, 1opt or 2. Without the GIL.");
  m.def("unsafe_beyond_order", &call_unsafe_beyond_order, "graph"_a,
        "The pairs that are safe if operators run by number, in both directions. Without the GIL.");
  m.def("latest_ancestors", &call_latest_ancestors, "graph"_a, "MaxAncId, operators x streams.");
  m.def("witness", &witness, "graph"_a, "a"_a, "b"_a, "For two different tensors.");
}

}  // namespace memplan::python
