// Plans in which sharing addresses costs.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_apart(nanobind::module_& m);

}  // namespace memplan::python
