// Options of solvers as values of Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "memplan/option.h"

namespace memplan::python {

namespace nb = nanobind;

[[noreturn]] inline void refuse(const std::string& what) { throw nb::value_error(what.c_str()); }

// Converts a value of Python to an option, or throws a sentence with the allowed values.
struct Setter {
  std::string option;  // in words
  std::string solver;
  nb::handle value;

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
};

// Sets every option named in `given`, in every row of that name: `set` makes of a Setter one for
// all types of the rows. Throws nanobind::value_error, with one sentence that names the solver and
// the option, for an option that is in no row or a value of another type.
template <typename Rows, typename Set>
void set_rows(const Rows& rows, const std::string& solver, const nb::dict& given, const Set& set) {
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    bool known = false;
    for (const auto& each : rows) {
      if (name != each.name) continue;
      std::visit(set(Setter{"the option " + name, solver, value}), each.value);
      known = true;
    }
    if (!known) refuse(solver + " has no option " + name);
  }
}

// The default of an option. What only an object can be is False.
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

// Name, default and sentence of each option.
template <typename Rows>
nb::list listed(const Rows& rows) {
  nb::list all;
  for (const auto& each : rows) {
    all.append(nb::make_tuple(each.name, std::visit(Default{}, each.value), each.says));
  }
  return all;
}

constexpr const char* kListed =
    "def options(solver: str) -> list[tuple[str, bool | str | list[str], str]]";

}  // namespace memplan::python
