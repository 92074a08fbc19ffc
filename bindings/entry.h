// How Python enters a native module of memplan. A file that defines one begins it with
//
//     #define PyInit__name init_of_nanobind
//     NB_MODULE(_name, m) { ... }
//     #undef PyInit__name
//
// and ends with `extern "C" NB_EXPORT PyObject* PyInit__name() { return enter(init_of_nanobind); }`
#pragma once

#include <nanobind/nanobind.h>

namespace memplan::python {

// A callback of a search takes the GIL of the main interpreter; a search in a sub-interpreter would
// wait for it for ever. So a sub-interpreter is refused, before nanobind changes shared state. The
// main interpreter has the number 0.
inline PyObject* enter(PyObject* (*init)()) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "memplan cannot run in a sub-interpreter: import it in the main interpreter, "
                    "or in a process of its own");
    return nullptr;
  }
  return init();
}

}  // namespace memplan::python
