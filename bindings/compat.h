// The library of the compat header, for memplan.extensions.minimalloc.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_compat(nanobind::module_& m);

}  // namespace memplan::python
