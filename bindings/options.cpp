#include "options.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "memplan/learning.h"
#include "policy.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw nb::value_error(what.c_str()); }

// Converts a value of Python to an option, or throws a sentence with the allowed values.
struct Setter {
  std::string option;  // in words
  std::string solver;
  nb::handle value;
  Caller* caller;

  template <typename T>
  T value_of(const char* kind) const {
    T taken{};
    if (!nb::try_cast(value, taken, false)) refuse(option + " of " + solver + " must be " + kind);
    return taken;
  }

  void operator()(bool* taken) const { *taken = value_of<bool>("True or False"); }

  // From the command line, a name comes as a list of one. Callers may have another name for the
  // solver than the core, so the sentence does not name it.
  void operator()(std::string* taken) const {
    Names names;
    if (nb::try_cast(value, *taken, false)) return;
    if (!nb::try_cast(value, names, false) || names.size() != 1) {
      refuse(option + " must be one name");
    }
    *taken = names[0];
  }

  void operator()(Names* taken) const {
    // A string is also a sequence of strings of one letter, but no caller means that.
    if (nb::isinstance<nb::str>(value)) refuse(option + " of " + solver + " must be a list");
    *taken = value_of<Names>("a list of names");
  }

  // Python reads the file of a model; here it is an object.
  void operator()(std::shared_ptr<const BacktrackModel>* taken) const {
    if (nb::isinstance<nb::bool_>(value) && !nb::cast<bool>(value)) return taken->reset();
    if (!nb::isinstance<BacktrackModel>(value)) refuse(option + " must be a BacktrackModel");
    *taken = nb::cast<std::shared_ptr<const BacktrackModel>>(value);
  }

  // Python checks the answers of the two functions.
  void operator()(std::shared_ptr<SearchPolicy>* taken) const {
    if (nb::isinstance<nb::bool_>(value) && !nb::cast<bool>(value)) return taken->reset();
    std::pair<nb::object, nb::object> functions;
    if (!nb::try_cast(value, functions, false)) refuse(option + " must be two functions");
    *taken = make_policy(caller, functions.first, functions.second);
  }
};

// The default of an option, as a value of Python. Without a model or a policy it is False.
struct Default {
  template <typename T>
  nb::object operator()(const T* value) const {
    return nb::cast(*value);
  }
  template <typename T>
  nb::object operator()(const std::shared_ptr<T>*) const {
    return nb::cast(false);
  }
};

nb::list options_by_default(const Solver& solver) {
  SolveOptions defaults;
  defaults.solver = solver.name;
  nb::list rows;
  for (const Option& each : options_of(&defaults)) {
    rows.append(nb::make_tuple(each.name, std::visit(Default{}, each.value), each.says));
  }
  return rows;
}

std::vector<std::string> lacks(const Solver& solver) {
  std::vector<std::string> names;
  if ((solver.lacks & kPlaces) != 0) names = {"alignment", "pins", "reserved"};
  if ((solver.lacks & kWindows) != 0) names.push_back("windows");
  if ((solver.lacks & kRelations) != 0) names.insert(names.end(), {"conflicts", "groups"});
  return names;
}

}  // namespace

void set_options(SolveOptions* options, const nb::dict& given, Caller* caller) {
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    bool known = false;
    for (const Option& each : options_of(options)) {
      if (name != each.name) continue;
      std::visit(Setter{"the option " + name, options->solver, value, caller}, each.value);
      known = true;
    }
    if (!known) refuse(options->solver + " has no option " + name);
  }
}

void bind_solvers(nb::module_& m) {
  nb::class_<Solver>(m, "Solver", "A solver of the core, as data.")
      .def_prop_ro("name", [](const Solver& solver) { return solver.name; })
      .def_prop_ro(
          "says", [](const Solver& solver) { return solver.says; }, "What it is, in a line.")
      .def_prop_ro("lacks", &lacks, "The constraints that it refuses.")
      .def_prop_ro(
          "proves", [](const Solver& solver) { return solver.proves; },
          "Whether it can write down why no plan is better.")
      .def_prop_ro(
          "baseline", [](const Solver& solver) { return solver.baseline; },
          "Whether it is here to be compared with.")
      .def_prop_ro("options", &options_by_default,
                   nb::sig("def options(self) -> list[tuple[str, bool | str | list[str], str]]"),
                   "Name, default and sentence of each option.");
  m.def("solvers", &solvers, "The table of solvers.");
}

}  // namespace memplan::python
