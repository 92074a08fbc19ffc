// Solvers that another native module hands to memplan._core.
#pragma once

#include <functional>
#include <memory>

#include "caller.h"
#include "memplan/solve.h"

namespace memplan::python {

// A solver with the options of a call, as an object of Python.
struct Outside {
  std::shared_ptr<const OutsideSolver> solver;
  // Empty, or told before a search who answers for what runs in Python.
  std::function<void(Caller*)> meet;
};

}  // namespace memplan::python
