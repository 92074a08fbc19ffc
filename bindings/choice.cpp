#include "memplan/choice.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

Choice call_choose(const Column<Time>& start, const Column<Time>& end, const Column<Bytes>& bytes,
                   const Column<std::int64_t>& worth, const Column<std::int32_t>& memory,
                   const Column<std::int32_t>& unit, const Column<std::uint8_t>& must,
                   const std::vector<Bytes>& capacity,
                   const std::vector<std::vector<std::int32_t>>& refused,
                   std::optional<double> seconds, std::optional<std::int64_t> nodes) {
  const ChoiceProblem problem{copied(start), copied(end),    copied(bytes),
                              copied(worth), copied(memory), copied(unit),
                              copied(must),  capacity,       refused};
  ChoiceOptions options;
  limit(&options.budget, seconds, nodes);
  Caller caller(std::nullopt, std::nullopt);
  return search_for(&caller, &options, [&] { return choose(problem, options); });
}

}  // namespace

void bind_choice(nb::module_& m) {
  nb::class_<Choice>(m, "Choice", "The items that are chosen for memories, and a bound.")
      .def_ro("chosen", &Choice::chosen)
      .def_ro("worth", &Choice::worth)
      .def_ro("bound", &Choice::bound)
      .def_prop_ro("status", [](const Choice& found) { return std::string(name(found.status)); })
      .def_ro("times", &Choice::times)
      .def_ro("prices", &Choice::prices)
      .def_ro("shift", &Choice::shift)
      .def_ro("nodes", &Choice::nodes)
      .def_ro("interrupted", &Choice::interrupted);

  m.def("choose", &call_choose, "start"_a, "end"_a, "bytes"_a, "worth"_a, "memory"_a, "unit"_a,
        "must"_a, "capacity"_a, "refused"_a, "seconds"_a.none(), "nodes"_a.none(),
        "The items that are worth most together within the capacities of memories at each time. Of "
        "a unit, no two are live at a time; sets that are refused are never whole. Without the "
        "GIL.");
}

}  // namespace memplan::python
