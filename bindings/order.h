// The order of operators with the least peak.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_order(nanobind::module_& m);

}  // namespace memplan::python
