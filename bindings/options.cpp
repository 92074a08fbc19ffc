#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "memplan/solve.h"
#include "parts.h"
#include "settings.h"

using namespace nanobind::literals;

namespace memplan::python {

namespace {

nb::list options_by_default(const std::string& solver) {
  SolveOptions defaults;
  defaults.solver = solver;
  return listed(options_of(&defaults));
}

std::vector<std::string> lacks(const Solver& solver) {
  std::vector<std::string> names;
  if ((solver.lacks & kPlaces) != 0) names = {"alignment", "pins", "reserved"};
  if ((solver.lacks & kWindows) != 0) names.push_back("windows");
  if ((solver.lacks & kRelations) != 0) names.insert(names.end(), {"conflicts", "groups"});
  return names;
}

}  // namespace

void bind_solvers(nb::module_& m) {
  nb::class_<Solver>(m, "Solver", "A native solver, as data.")
      .def_prop_ro("name", [](const Solver& solver) { return solver.name; })
      .def_prop_ro(
          "says", [](const Solver& solver) { return solver.says; }, "What it is, in a line.")
      .def_prop_ro("lacks", &lacks, "The constraints that it refuses.")
      .def_prop_ro(
          "proves", [](const Solver& solver) { return solver.proves; },
          "Whether it can write down why no plan is better.")
      .def_prop_ro(
          "baseline", [](const Solver& solver) { return solver.baseline; },
          "Whether it is here to be compared with.");
  m.def("solvers", &solvers, "The table of solvers.");
  m.def("options", &options_by_default, "solver"_a, nb::sig(kListed),
        "Name, default and sentence of each option.");
}

}  // namespace memplan::python
