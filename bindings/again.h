// Sequences in which operators run again.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_again(nanobind::module_& m);

}  // namespace memplan::python
