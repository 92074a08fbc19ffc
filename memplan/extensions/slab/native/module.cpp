// Defines the Python module of the extension.
#include <exception>

#include "allocator.h"
#include "python_types.h"

namespace {

PyObject* module_move_out(PyObject*, PyObject* storage) {
  void* const at = PyLong_AsVoidPtr(storage);
  if (at == nullptr) return nullptr;
  try {
    return PyBool_FromLong(memplan::move_out(at));
  } catch (const std::exception&) {
    return PyErr_NoMemory();
  }
}

PyObject* module_is_in_slab(PyObject*, PyObject* memory) {
  void* const at = PyLong_AsVoidPtr(memory);
  if (at == nullptr && PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(memplan::is_in_slab(at));
}

PyMethodDef methods[] = {{"move_out", module_move_out, METH_O, nullptr},
                         {"is_in_slab", module_is_in_slab, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "memplan_slab",
                          nullptr,
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_memplan_slab() {
  PyObject* const module = PyModule_Create(&definition);
  for (PyType_Spec* spec :
       {&memplan::python::frame_spec, &memplan::python::pool_spec, &memplan::python::runner_spec}) {
    PyObject* const type = PyType_FromSpec(spec);
    if (type == nullptr || PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) < 0)
      return nullptr;
    Py_DECREF(type);
  }
  return module;
}
