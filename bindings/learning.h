// The trees that say where a search goes back to, and the samples that they are trained on.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_learning(nanobind::module_& m);

}  // namespace memplan::python
