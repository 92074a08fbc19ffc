// The switches of the solvers, by the names that they have in C++.
#pragma once

#include <nanobind/nanobind.h>

#include "memplan/solve.h"

namespace memplan::python {

// Sets every switch named in `given`. Throws nanobind::value_error, with one sentence that names
// the solver and the option, for a name that `options->solver` does not have and for a value of
// another kind.
void set_switches(SolveOptions* options, const nanobind::dict& given);

}  // namespace memplan::python
