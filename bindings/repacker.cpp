#include "memplan/repacker.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caller.h"
#include "columns.h"
#include "outside.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

using Columns = Array<Bytes, 2>;

// Reads attributes of Python objects. The names are made once, since that takes time.
class Fields {
 public:
  explicit Fields(const char* name) : name_(nb::steal(PyUnicode_InternFromString(name))) {}

  nb::object of(nb::handle object) const { return nb::getattr(object, name_); }
  // Returns false for a value that is not a plain int of 64 bits.
  bool read(nb::handle object, std::int64_t* value) const {
    const nb::object given = of(object);
    return PyLong_CheckExact(given.ptr()) != 0 && nb::try_cast(given, *value, false);
  }

 private:
  nb::object name_;
};

struct BufferFields {
  Fields id{"id"}, start{"start"}, end{"end"}, size{"size"}, alignment{"alignment"}, pin{"pin"},
      hint{"hint"}, gaps{"gaps"};
};

// Whether a string is not empty and has only ASCII characters. Then its UTF-8 has a byte for each
// character, which the stable ABI can tell.
bool is_plain_ascii(nb::handle text) {
  const Py_ssize_t count = PyUnicode_GetLength(text.ptr());
  Py_ssize_t bytes = 0;
  if (PyUnicode_AsUTF8AndSize(text.ptr(), &bytes) == nullptr) {
    PyErr_Clear();  // half of a surrogate pair
    return false;
  }
  return count > 0 && count == bytes;
}

// Converts objects of memplan.Buffer to rows. Returns nothing if one has gaps, hints or odd types:
// then memplan.Problem converts it, or raises an error.
std::optional<Problem> rows_of(const BufferFields& fields, const nb::tuple& buffers) {
  Problem rows;
  for (auto* column : {&rows.start, &rows.end, &rows.size, &rows.alignment, &rows.pin}) {
    column->reserve(buffers.size());
  }
  bool aligned = false;
  bool pinned = false;
  for (const nb::handle buffer : buffers) {
    const nb::object id = fields.id.of(buffer);
    if (PyUnicode_CheckExact(id.ptr()) == 0 || !is_plain_ascii(id)) return std::nullopt;
    std::int64_t start = 0, end = 0, size = 0, alignment = 1, pin = kNoOffset;
    if (!fields.start.read(buffer, &start) || !fields.end.read(buffer, &end) ||
        !fields.size.read(buffer, &size) || !fields.alignment.read(buffer, &alignment)) {
      return std::nullopt;
    }
    const nb::object given = fields.pin.of(buffer);
    if (!given.is_none() && (!nb::try_cast(given, pin, false) || pin < 0)) return std::nullopt;
    if (!fields.hint.of(buffer).is_none()) return std::nullopt;
    const nb::object gaps = fields.gaps.of(buffer);
    if (!PyTuple_CheckExact(gaps.ptr()) || PyTuple_Size(gaps.ptr()) > 0) return std::nullopt;
    rows.start.push_back(start);
    rows.end.push_back(end);
    rows.size.push_back(size);
    rows.alignment.push_back(alignment);
    rows.pin.push_back(pin);
    aligned = aligned || alignment != 1;
    pinned = pinned || pin != kNoOffset;
  }
  if (!aligned) rows.alignment.clear();
  if (!pinned) rows.pin.clear();
  return rows;
}

Repacked call_repack(Repacker& repacker, std::optional<Bytes> capacity, const std::string& solver,
                     bool minimize, std::optional<double> seconds,
                     std::optional<std::int64_t> nodes, int threads, std::uint64_t seed,
                     const Outside* outside) {
  Caller caller(std::nullopt, std::nullopt);
  SolveOptions chosen = asked(solver, minimize, seconds, nodes, threads, seed, outside, &caller);
  Repacked answer = search_for(&caller, &chosen, [&] { return repacker.repack(capacity, chosen); });
  answer.stats.interrupted = answer.stats.interrupted || caller.interrupted();
  return answer;
}

Columns columns_of(const Repacker& repacker, const std::vector<Slot>& slots) {
  return given<Bytes, 2>(repacker.columns(slots), {Repacker::kColumns, slots.size()});
}

}  // namespace

void bind_repacker(nb::module_& m) {
  nb::class_<Repacked>(m, "Repacked", "The answer to one call of `Repacker.repack`.")
      .def_prop_ro("status", [](const Repacked& answer) { return name(answer.status); })
      .def_ro("lower_bound", &Repacked::lower_bound)
      .def_ro("moved", &Repacked::moved, "Buffers of the plan before that lie elsewhere now.")
      .def_ro("conflict", &Repacked::conflict, "Slots that cannot be placed together.")
      .def_prop_ro("solver", [](const Repacked& answer) { return answer.stats.solver; })
      .def_prop_ro("nodes", [](const Repacked& answer) { return answer.stats.nodes; })
      .def_prop_ro("restarts", [](const Repacked& answer) { return answer.stats.restarts; })
      .def_prop_ro(
          "seconds", [](const Repacked& answer) { return answer.stats.seconds; }, "By phase.")
      .def_prop_ro("note", [](const Repacked& answer) { return answer.stats.note; })
      .def_prop_ro("interrupted", [](const Repacked& answer) { return answer.stats.interrupted; });

  nb::class_<Repacker>(m, "Repacker", "A plan that is kept while buffers come and go, by slots.")
      .def(
          "__init__",
          [](Repacker* self, const Column<Bytes>& lower, const Column<Bytes>& upper) {
            if (lower.size() != upper.size()) {
              throw nb::value_error("lower and upper must have as many rows as each other");
            }
            std::vector<Reserved> reserved;
            for (std::size_t i = 0; i < lower.size(); ++i) reserved.push_back({lower(i), upper(i)});
            new (self) Repacker(std::move(reserved));
          },
          "reserved_lower"_a, "reserved_upper"_a)
      .def("add", &Repacker::add, "rows"_a, "The slots of the rows of a problem.")
      .def(
          "add_buffers",
          [fields = BufferFields()](Repacker& self, const nb::tuple& buffers) {
            const std::optional<Problem> rows = rows_of(fields, buffers);
            return rows ? std::optional(self.add(*rows)) : std::nullopt;
          },
          "buffers"_a,
          nb::sig("def add_buffers(self, buffers: tuple[object, ...]) -> list[int] | None"),
          "The same for objects of memplan.Buffer; None, and nothing added, for those that only a "
          "problem can take.")
      .def("copy", [](const Repacker& self) { return Repacker(self); })
      .def("__getstate__", &Repacker::save)
      .def("__setstate__",
           [](Repacker& self, std::vector<std::int64_t> saved) {
             new (&self) Repacker(Repacker::restored(std::move(saved)));
           })
      .def("remove", &Repacker::remove, "slots"_a)
      .def("repack", &call_repack, "capacity"_a.none(), "solver"_a, "minimize"_a,
           "seconds"_a.none(), "nodes"_a.none(), "threads"_a, "seed"_a,
           "outside"_a.none() = nb::none(),
           "Places all, without the GIL; Ctrl-C ends it with the best plan.")
      .def("lower_bound", &Repacker::lower_bound, "No plan has a smaller peak.")
      .def_prop_ro("peak", &Repacker::peak, "Of those that are placed.")
      .def("offset", &Repacker::offset, "slot"_a, "In bytes; -1 where it is not placed yet.")
      .def("columns", &columns_of, "slots"_a,
           "One row for each of start, end, size, alignment, pin and offset; -1 stands for no pin "
           "and no offset.");
}

}  // namespace memplan::python
