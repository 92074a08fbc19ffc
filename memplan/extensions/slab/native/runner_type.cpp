// The Python type that calls a model in a slab.
#include <cstddef>
#include <optional>

#include "allocator.h"
#include "python_types.h"

namespace memplan::python {
namespace {

struct Runner {
  PyObject head;
  vectorcallfunc vectorcall;
  PyObject* pool;
  PyObject* model;
  PyObject* binding;
  PyObject* settle;  // called with a result if tensors of the call are alive in the slab
};

// While this lives, allocations of this thread go to a slab, or to ordinary memory without one.
class Turn {
 public:
  Turn(Slab* slab, const void* binding) : outer_(current_slab) {
    if (slab != nullptr) {
      slab->binding = binding;
      if (slab->by() == kOperators) frames_.emplace();
    }
    current_slab = slab;
  }
  ~Turn() { current_slab = outer_; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Slab* const outer_;
  std::optional<OperatorFrames> frames_;
};

PyObject* refuse(const char* sentence) {
  PyObject* const errors = PyImport_ImportModule("memplan.base.errors");
  if (errors == nullptr) return nullptr;
  if (PyObject* const type = PyObject_GetAttrString(errors, "MemplanError")) {
    PyErr_SetString(type, sentence);
    Py_DECREF(type);
  }
  Py_DECREF(errors);
  return nullptr;
}

PyObject* runner_call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  Runner* const runner = cast<Runner>(self);
  Pool* const pool = pool_of(runner->pool);
  if (pool == nullptr)
    return refuse("this slab is closed; make another of the same plan and trace");
  Slab* const slab = pool->begin();
  PyObject* result = guarded<PyObject*>(nullptr, [&] {
    const Turn turn(slab, runner->binding);
    return PyObject_Vectorcall(runner->model, args, count, names);
  });
  if (slab == nullptr) return result;
  if (result != nullptr && slab->is_holding()) {
    PyObject* const done = PyObject_CallOneArg(runner->settle, result);
    if (done == nullptr) Py_CLEAR(result);
    Py_XDECREF(done);
  }
  slab->end();
  return result;
}

PyObject* runner_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *pool, *model, *binding, *settle;
  if (!PyArg_ParseTuple(args, "OOOO", &pool, &model, &binding, &settle)) return nullptr;
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Runner* const runner = cast<Runner>(self);
  runner->vectorcall = runner_call;
  runner->pool = Py_NewRef(pool);
  runner->model = Py_NewRef(model);
  runner->binding = Py_NewRef(binding);
  runner->settle = Py_NewRef(settle);
  return self;
}

int runner_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast<Runner>(self)->pool);
  Py_VISIT(cast<Runner>(self)->model);
  Py_VISIT(cast<Runner>(self)->binding);
  Py_VISIT(cast<Runner>(self)->settle);
  return 0;
}

int runner_clear(PyObject* self) {
  Py_CLEAR(cast<Runner>(self)->pool);
  Py_CLEAR(cast<Runner>(self)->model);
  Py_CLEAR(cast<Runner>(self)->binding);
  Py_CLEAR(cast<Runner>(self)->settle);
  return 0;
}

PyMemberDef runner_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Runner, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot runner_slots[] = {{Py_tp_new, reinterpret_cast<void*>(runner_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(runner_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(runner_clear)},
                              {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_members, runner_members},
                              {0, nullptr}};

}  // namespace

PyType_Spec runner_spec = {"memplan_slab.Runner", sizeof(Runner), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                           runner_slots};

}  // namespace memplan::python
