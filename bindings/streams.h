// Programs on parallel streams, and the tensors that may be needed at the same time.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_streams(nanobind::module_& m);

}  // namespace memplan::python
