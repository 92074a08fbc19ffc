#include "memplan/learning.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "columns.h"
#include "outside.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

using Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<float, 2>;
using Scores = Array<double, 1>;

Forest make_forest(const Column<std::int32_t>& feature, const Column<float>& threshold,
                   const Column<std::int32_t>& left, const Column<std::int32_t>& right,
                   const Column<double>& value, const Column<std::int32_t>& root) {
  return Forest({copied(feature), copied(threshold), copied(left), copied(right), copied(value),
                 copied(root)});
}

Scores call_score(const Forest& forest, const Rows& rows) {
  std::vector<double> scores(rows.shape(0));
  {
    const nb::gil_scoped_release released;
    forest.score(rows.data(), rows.shape(0), rows.shape(1), scores.data());
  }
  return given<double>(std::move(scores), {rows.shape(0)});
}

BacktrackSamples call_collect(const Problem& problem, std::int64_t steps, std::int64_t oracle_nodes,
                              double oracle_share, std::uint64_t seed,
                              std::shared_ptr<const BacktrackModel> model, const Outside& oracle) {
  if (!problem.capacity) throw nb::value_error("collecting needs a problem with a capacity");
  CollectOptions options;
  options.steps = steps;
  options.oracle_nodes = oracle_nodes;
  options.oracle_share = oracle_share;
  options.seed = seed;
  options.model = std::move(model);
  options.oracle = oracle.solver->search;
  Stopper stopper(std::numeric_limits<double>::infinity(), [] {
    const nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  });
  BacktrackSamples samples;
  {
    const nb::gil_scoped_release released;
    samples = collect_backtracks(problem, sweep(problem), *problem.capacity, options, stopper);
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();  // Ctrl-C
  return samples;
}

// Shares the memory of the samples, which live as long as the array does.
template <typename T>
auto column(const std::vector<T> BacktrackSamples::* member) {
  return [member](nb::handle_t<BacktrackSamples> self) {
    const std::vector<T>& cells = nb::inst_ptr<BacktrackSamples>(self)->*member;
    return Array<T, 1>(cells.data(), {cells.size()}, self);
  };
}

Matrix feature_matrix(nb::handle_t<BacktrackSamples> self) {
  const BacktrackSamples& samples = *nb::inst_ptr<BacktrackSamples>(self);
  return Matrix(samples.features.data(), {samples.level.size(), backtrack_features().size()}, self);
}

}  // namespace

void bind_learning(nb::module_& m) {
  m.def("backtrack_features", &backtrack_features, "What a target is scored by, by column.");

  nb::class_<Forest>(m, "Forest", "Regression trees; see core/published/include/memplan/forest.h.")
      .def(
          "__init__",
          [](Forest* self, const Column<std::int32_t>& feature, const Column<float>& threshold,
             const Column<std::int32_t>& left, const Column<std::int32_t>& right,
             const Column<double>& value, const Column<std::int32_t>& root) {
            new (self) Forest(make_forest(feature, threshold, left, right, value, root));
          },
          "feature"_a, "threshold"_a, "left"_a, "right"_a, "value"_a, "root"_a)
      .def_prop_ro("trees", &Forest::trees)
      .def_prop_ro("width", &Forest::width, "How many features it asks for.")
      .def("score", &call_score, "rows"_a, "The sum over the trees for each row. Without the GIL.");

  nb::class_<BacktrackModel>(m, "BacktrackModel", "Says where a search goes back to.")
      .def(
          "__init__",
          [](BacktrackModel* self, const Forest& forest, double threshold, double discount) {
            new (self) BacktrackModel(forest, threshold, discount);
          },
          "forest"_a, "threshold"_a, "discount"_a);

  nb::class_<BacktrackSamples>(m, "BacktrackSamples", "What a search saw at major backtracks.")
      .def_prop_ro("features", &feature_matrix, "One row per target.")
      .def_prop_ro("level", column(&BacktrackSamples::level), "Of each target.")
      .def_prop_ro("impasse", column(&BacktrackSamples::impasse), "Of each target, ascending.")
      .def_prop_ro("length", column(&BacktrackSamples::length), "Of the path of each impasse.")
      .def_prop_ro("solvable", column(&BacktrackSamples::solvable),
                   "How much of it some solution has, from its first placement on.")
      .def_prop_ro("shared", column(&BacktrackSamples::shared),
                   "How much of it the solution has that was found.")
      .def_prop_ro("solved",
                   [](const BacktrackSamples& samples) { return samples.plan.has_offsets(); });

  m.def("collect_backtracks", &call_collect, "problem"_a, "steps"_a, "oracle_nodes"_a,
        "oracle_share"_a, "seed"_a, "model"_a.none(), "oracle"_a,
        "Searches once, with a complete search as the oracle. Without the GIL.");
}

}  // namespace memplan::python
