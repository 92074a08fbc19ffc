// The trees that choose where a search goes back to, and the samples that train them.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_learning(nanobind::module_& m);

}  // namespace memplan::python
