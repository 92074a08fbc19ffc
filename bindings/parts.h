// What the files of the native modules bind, each into its module.
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

void bind_again(nanobind::module_& m);     // sequences in which operators run again
void bind_apart(nanobind::module_& m);     // plans in which sharing addresses costs
void bind_choice(nanobind::module_& m);    // the choice of what lies in a memory
void bind_compat(nanobind::module_& m);    // the library of the compat header
void bind_learning(nanobind::module_& m);  // in _published: trees, and samples that train them
void bind_order(nanobind::module_& m);     // the order of operators with the least peak
void bind_repacker(nanobind::module_& m);  // plans that are kept while buffers come and go
void bind_solvers(nanobind::module_& m);   // the solvers of the core and their options
void bind_streams(nanobind::module_& m);   // programs on parallel streams, and unsafe pairs

}  // namespace memplan::python
