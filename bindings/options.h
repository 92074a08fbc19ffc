// The solvers of the core and their options, from its tables.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_solvers(nanobind::module_& m);

}  // namespace memplan::python
