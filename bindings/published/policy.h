// A policy of the search of telamalloc that is written in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>

#include "caller.h"
#include "memplan/policy.h"

namespace memplan::python {

// A policy in Python, and how it gets to know the caller of a search, which must outlive that.
struct Policy {
  std::shared_ptr<SearchPolicy> policy;
  std::function<void(Caller*)> meet;
};

// Calls `choose`, which returns (row, offset or None) or None, and `go_back`, which returns a level
// or None. Both get the columns of the state: capacity, rows and offsets of placed buffers, rows,
// lower and upper of the candidates, rows that failed, and levels at fault. Their exceptions go to
// the caller; then the policy leaves every point, until the search has ended.
Policy make_policy(nb::object choose, nb::object go_back);

}  // namespace memplan::python
