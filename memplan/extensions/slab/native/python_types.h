// The types of the Python module. They use CPython's own interface, as a frame around every
// module's forward must cost almost nothing, and a binding library adds a cost to each call.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <exception>
#include <new>

#include "pool.h"

namespace memplan::python {

template <class T>
T* cast(PyObject* object) {
  return reinterpret_cast<T*>(object);
}

// Runs `body`. As the caller is C, this catches an exception, sets Python's error and returns
// `failed`.
template <class Result, class Body>
Result guarded(Result failed, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failed;
}

// Deallocates an object of a heap type that takes part in garbage collection.
inline void dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  type->tp_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

extern PyType_Spec frame_spec;   // is in a module's dictionary as its `forward`
extern PyType_Spec pool_spec;    // the slabs of a plan
extern PyType_Spec runner_spec;  // a model that runs in them

// Returns the pool of a Pool object, or nullptr if it is closed.
Pool* pool_of(PyObject* object);

}  // namespace memplan::python
