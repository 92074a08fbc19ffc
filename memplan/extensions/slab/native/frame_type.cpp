// A wrapper of a module's forward, which enters a frame of the current slab while that runs.
#include <cstdint>

#include "allocator.h"
#include "frames.h"
#include "python_types.h"

namespace memplan::python {
namespace {

struct Frame {
  PyObject head;
  vectorcallfunc vectorcall;
  PyObject* forward;  // the wrapped forward
  PyObject* binding;  // only calls of this binding enter the frame
  Hash name;
};

PyObject* frame_call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  Frame* const frame = cast<Frame>(self);
  // This holds a reference, as another thread may close a slab and unwrap the forward meanwhile.
  PyObject* const forward = Py_NewRef(frame->forward);
  Slab* const slab = current_slab;
  if (slab == nullptr || slab->binding != frame->binding) {
    PyObject* const result = PyObject_Vectorcall(forward, args, count, names);
    Py_DECREF(forward);
    return result;
  }
  PyObject* const result = guarded<PyObject*>(nullptr, [&] {
    slab->enter(frame->name);
    PyObject* const returned = PyObject_Vectorcall(forward, args, count, names);
    slab->leave();
    return returned;
  });
  Py_DECREF(forward);
  return result;
}

PyObject* frame_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *forward, *binding;
  const char* name;
  Py_ssize_t length;
  if (!PyArg_ParseTuple(args, "OOs#", &forward, &binding, &name, &length)) return nullptr;
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Frame* const frame = cast<Frame>(self);
  frame->vectorcall = frame_call;
  frame->forward = Py_NewRef(forward);
  frame->binding = Py_NewRef(binding);
  frame->name = hash_of({name, static_cast<std::size_t>(length)});
  return self;
}

int frame_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast<Frame>(self)->forward);
  Py_VISIT(cast<Frame>(self)->binding);
  return 0;
}

int frame_clear(PyObject* self) {
  Py_CLEAR(cast<Frame>(self)->forward);
  Py_CLEAR(cast<Frame>(self)->binding);
  return 0;
}

// Signature, documentation and `__self__` are those of the wrapped forward.
PyObject* frame_getattro(PyObject* self, PyObject* name) {
  PyObject* const own = PyObject_GenericGetAttr(self, name);
  if (own != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(cast<Frame>(self)->forward, name);
}

// Copies and pickles of the model get the plain forward of the copy, as `cast(None, forward)`, so
// that unpickling does not need this extension.
PyObject* frame_reduce(PyObject* self, PyObject*) {
  PyObject* const typing = PyImport_ImportModule("typing");
  if (typing == nullptr) return nullptr;
  PyObject* const identity = PyObject_GetAttrString(typing, "cast");
  Py_DECREF(typing);
  if (identity == nullptr) return nullptr;
  return Py_BuildValue("N(OO)", identity, Py_None, cast<Frame>(self)->forward);
}

PyMethodDef frame_methods[] = {{"__reduce__", frame_reduce, METH_NOARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

PyMemberDef frame_members[] = {
    {"__wrapped__", T_OBJECT_EX, offsetof(Frame, forward), 0, nullptr},
    {"binding", T_OBJECT_EX, offsetof(Frame, binding), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Frame, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot frame_slots[] = {{Py_tp_new, reinterpret_cast<void*>(frame_new)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                             {Py_tp_traverse, reinterpret_cast<void*>(frame_traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(frame_clear)},
                             {Py_tp_getattro, reinterpret_cast<void*>(frame_getattro)},
                             {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                             {Py_tp_methods, frame_methods},
                             {Py_tp_members, frame_members},
                             {0, nullptr}};

}  // namespace

PyType_Spec frame_spec = {"memplan_slab.Frame", sizeof(Frame), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                          frame_slots};

}  // namespace memplan::python
