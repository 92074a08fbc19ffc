#include "memplan/apart.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "caller.h"
#include "columns.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

std::vector<Penalty> penalties_of(const Column<std::int64_t>& first,
                                  const Column<std::int64_t>& second,
                                  const Column<std::int64_t>& cost) {
  if (first.size() != second.size() || first.size() != cost.size()) {
    throw nb::value_error("first, second and cost must have as many rows as each other");
  }
  std::vector<Penalty> penalties;
  penalties.reserve(cost.size());
  for (std::size_t i = 0; i < cost.size(); ++i) {
    penalties.push_back(
        {static_cast<BufferIdx>(first(i)), static_cast<BufferIdx>(second(i)), cost(i)});
  }
  return penalties;
}

ApartResult call_plan_apart(const Problem& problem, const Column<std::int64_t>& first,
                            const Column<std::int64_t>& second, const Column<std::int64_t>& cost,
                            std::optional<double> seconds, std::optional<std::int64_t> nodes,
                            std::uint64_t seed) {
  const std::vector<Penalty> penalties = penalties_of(first, second, cost);
  ApartOptions options;
  limit(&options.budget, seconds, nodes);
  options.seed = seed;
  Caller caller(std::nullopt, std::nullopt);
  return search_for(&caller, &options, [&] { return plan_apart(problem, penalties, options); });
}

}  // namespace

void bind_apart(nb::module_& m) {
  nb::class_<ApartResult>(m, "ApartResult", "A plan in which sharing costs, and bounds.")
      .def_prop_ro("status",
                   [](const ApartResult& result) { return std::string(name(result.status)); })
      .def_ro("offsets", &ApartResult::offsets, "In bytes, one per buffer; empty without a plan.")
      .def_ro("cost", &ApartResult::cost)
      .def_ro("bound", &ApartResult::bound, "No plan costs less.")
      .def_ro("peak", &ApartResult::peak)
      .def_ro("peak_bound", &ApartResult::peak_bound, "No plan of this cost has a smaller peak.")
      .def_ro("conflict", &ApartResult::conflict, "Rows that cannot be placed together.")
      .def_ro("nodes", &ApartResult::nodes)
      .def_ro("interrupted", &ApartResult::interrupted);

  m.def("plan_apart", &call_plan_apart, "problem"_a, "first"_a, "second"_a, "cost"_a,
        "seconds"_a.none(), "nodes"_a.none(), "seed"_a,
        "A plan of least cost, where pairs of rows cost if they share addresses. Without the GIL.");
}

}  // namespace memplan::python
