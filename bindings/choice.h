// The choice of what lies in a memory.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_choice(nanobind::module_& m);

}  // namespace memplan::python
