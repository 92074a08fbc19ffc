// memplan._published: the published searches, as solvers that memplan._core runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compat.h"
#include "entry.h"
#include "memplan/published.h"
#include "outside.h"
#include "parts.h"
#include "policy.h"
#include "settings.h"

namespace memplan::python {

namespace {

// Sets also what only objects can be.
struct PublishedSetter : Setter {
  std::function<void(Caller*)>* meet;

  using Setter::operator();

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
    Policy made = make_policy(functions.first, functions.second);
    *taken = std::move(made.policy);
    *meet = std::move(made.meet);
  }
};

nb::list options_by_default(const std::string& solver) {
  PublishedOptions defaults;
  return listed(options_of(solver, &defaults));
}

Outside make_solver(const std::string& name,
                    const nb::typed<nb::dict, nb::str, nb::object>& given) {
  PublishedOptions options;
  std::function<void(Caller*)> meet;
  set_rows(options_of(name, &options), name, given,
           [&meet](const Setter& set) { return PublishedSetter{set, &meet}; });
  auto solver = published_solver(name, options);
  if (!solver) refuse("there is no published solver " + name);
  return {std::move(solver), std::move(meet)};
}

Outside compat_solver(const std::map<std::string, bool>& switches,
                      const std::vector<std::string>& orders) {
  minimalloc::SolverParams params;
  set_switches(&params, switches, orders);
  return {minimalloc::Published(params), {}};
}

}  // namespace

}  // namespace memplan::python

// The functions that Python calls are below. This is the expansion of nanobind's NB_MODULE.
#define PyInit__published init_of_nanobind
NB_MODULE(_published, m) {
  namespace py = memplan::python;
  namespace nb = nanobind;
  using namespace nb::literals;

  nb::module_::import_("memplan._core");  // has the types that both modules know
  m.doc() = "The published searches. `memplan.extensions.published` is the door to them.";
  m.def("solvers", &memplan::published_solvers, "The table of solvers.");
  m.def("options", &py::options_by_default, "solver"_a, nb::sig(py::kListed),
        "Name, default and sentence of each option.");
  m.def("solver", &py::make_solver, "name"_a, "options"_a, "For one call of `_core.solve`.");
  m.def("compat_solver", &py::compat_solver, "switches"_a, "orders"_a,
        "The search of MiniMalloc, for `_core.CompatSolver`.");
  py::bind_learning(m);
}
#undef PyInit__published

extern "C" NB_EXPORT PyObject* PyInit__published() {
  return memplan::python::enter(init_of_nanobind);
}
