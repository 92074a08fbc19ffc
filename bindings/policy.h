// A policy of the search of telamalloc that is written in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "caller.h"
#include "memplan/policy.h"

namespace memplan::python {

// Asks `choose` for (row, offset or None) or None, and `go_back` for a level or None, with the
// columns of the state: capacity, rows and offsets of what is placed, rows, lower and upper of the
// candidates, rows that failed, and levels at fault. What they raise goes to the caller, and from
// then on the policy gives every point up, until the search has ended. The caller must outlive it.
std::shared_ptr<SearchPolicy> make_policy(Caller* caller, nb::object choose, nb::object go_back);

}  // namespace memplan::python
