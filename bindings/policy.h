// A policy of the search of telamalloc that is written in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "caller.h"
#include "memplan/policy.h"

namespace memplan::python {

// Calls `choose`, which returns (row, offset or None) or None, and `go_back`, which returns a level
// or None. Both get the columns of the state: capacity, rows and offsets of placed buffers, rows,
// lower and upper of the candidates, rows that failed, and levels at fault. Their exceptions go to
// the caller; then the policy leaves every point, until the search has ended. The caller must
// outlive it.
std::shared_ptr<SearchPolicy> make_policy(Caller* caller, nb::object choose, nb::object go_back);

}  // namespace memplan::python
