// The library of the compat header, for memplan.compat.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_compat(nanobind::module_& m);

}  // namespace memplan::python
