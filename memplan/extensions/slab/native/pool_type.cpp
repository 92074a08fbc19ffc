// The Python type for the slabs of a plan.
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator.h"
#include "cuda_slab.h"
#include "frames.h"
#include "python_types.h"
#include "region.h"

namespace memplan::python {
namespace {

struct PoolObject {
  PyObject head;
  Pool* pool;  // nullptr when closed
};

struct Place {
  Hash frame[2];  // [By]
};

// Returns the place of a scope, which is a tuple of (name, number) with the outermost one first.
// Names of modules begin with a dot.
std::optional<Place> place_of(PyObject* scope) {
  Place place{{kRoot, kRoot}};
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(scope); ++at) {
    const char* name;
    Py_ssize_t length;
    unsigned int number;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(scope, at), "s#I", &name, &length, &number)) {
      return std::nullopt;
    }
    const auto hash = hash_of({name, static_cast<std::size_t>(length)});
    for (const auto by : {kModules, kOperators}) {
      if (by == kModules && name[0] != '.') continue;
      place.frame[by] = frame_in(place.frame[by], hash, number);
    }
  }
  return place;
}

// Returns the rows in a list. If the list is malformed, sets Python's error and returns nothing.
std::optional<std::vector<Row>> rows_of(PyObject* list) {
  std::vector<Row> rows;
  std::unordered_map<Hash, std::uint32_t> in_module;  // allocations so far
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list); ++at) {
    PyObject* scope;
    unsigned int ordinal, memory = 0;
    long long size, offset;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, at), "O!ILL|I", &PyTuple_Type, &scope, &ordinal,
                          &size, &offset, &memory)) {
      return std::nullopt;
    }
    const auto place = place_of(scope);
    if (!place) return std::nullopt;
    const auto [module, op] = place->frame;
    rows.push_back({{allocation_in(module, in_module[module]++), allocation_in(op, ordinal)},
                    size,
                    offset,
                    memory,
                    0,
                    0});
  }
  return rows;
}

Pool* make_on_host(std::vector<Row> rows, std::size_t limit) {
  install_allocator();
  try {
    return Pool::make(std::move(rows), limit, Region::get(), &remove_allocator);
  } catch (...) {
    remove_allocator();
    throw;
  }
}

Pool* make_on_device(std::vector<Row> rows, std::size_t limit, int device, Stream stream) {
  CudaRuntime::get();  // throws without CUDA here, and not later in a call
  // PyTorch never uninstalls its allocator for CUDA, so `gone` has nothing to do.
  return Pool::make(std::move(rows), limit, CudaStream::get(device, stream), [] {});
}

// Pool(rows, limit) takes rows (scope, ordinal, size, offset, memory) in the order of the
// recording, with offset -1 for allocations that are not planned; the memory, by number, may be
// left out, and each is a block of its own. Pool(rows, limit, device, stream) does the same on a
// CUDA device, for the work of one stream.
PyObject* pool_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* list;
  unsigned int limit;
  int device = -1;
  unsigned long long stream = 0;
  if (!PyArg_ParseTuple(args, "O!I|iK", &PyList_Type, &list, &limit, &device, &stream)) {
    return nullptr;
  }
  auto* const handle = reinterpret_cast<Stream>(static_cast<std::uintptr_t>(stream));
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  const bool made = guarded(false, [&] {
    std::optional<std::vector<Row>> rows = rows_of(list);
    if (!rows) return false;
    cast<PoolObject>(self)->pool = device < 0
                                       ? make_on_host(std::move(*rows), limit)
                                       : make_on_device(std::move(*rows), limit, device, handle);
    return true;
  });
  if (made) return self;
  Py_DECREF(self);
  return nullptr;
}

PyObject* pool_close(PyObject* self, PyObject*) {
  if (auto* const pool = std::exchange(cast<PoolObject>(self)->pool, nullptr)) pool->close();
  Py_RETURN_NONE;
}

PyObject* pool_totals(PyObject* self, PyObject*) {
  const auto* const pool = cast<PoolObject>(self)->pool;
  if (pool == nullptr) Py_RETURN_NONE;
  const auto t = pool->totals();
  return Py_BuildValue("(LLLLLLLLLLLL)", t.calls, t.hits, t.hit_bytes, t.outliving, t.unknown,
                       t.resized, t.occupied, t.elsewhere, t.other_bytes, t.without, t.slabs,
                       t.slab_bytes);
}

void pool_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  Py_XDECREF(pool_close(self, nullptr));
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef pool_methods[] = {{"close", pool_close, METH_NOARGS, nullptr},
                              {"totals", pool_totals, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

PyType_Slot pool_slots[] = {{Py_tp_new, reinterpret_cast<void*>(pool_new)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(pool_dealloc)},
                            {Py_tp_methods, pool_methods},
                            {0, nullptr}};

}  // namespace

PyType_Spec pool_spec = {"memplan_slab.Pool", sizeof(PoolObject), 0, Py_TPFLAGS_DEFAULT,
                         pool_slots};

Pool* pool_of(PyObject* object) { return cast<PoolObject>(object)->pool; }

}  // namespace memplan::python
