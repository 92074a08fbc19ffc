// The solvers and their options, from the tables of the core.
#pragma once

#include <nanobind/nanobind.h>

#include "caller.h"
#include "memplan/solve.h"

namespace memplan::python {

// Sets every option named in `given`, in every part of the solver that has it. Throws
// nanobind::value_error, with one sentence that names the solver and the option, if
// `options->solver` does not have the option or the value has another type. A policy reports to
// `caller`, which must outlive the options.
void set_options(SolveOptions* options, const nanobind::dict& given, Caller* caller);

void bind_solvers(nanobind::module_& m);

}  // namespace memplan::python
