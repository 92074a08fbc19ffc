// Plans that are kept while buffers come and go.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_repacker(nanobind::module_& m);

}  // namespace memplan::python
