// memplan._core: converts between the types of Python and those of the core. It has no logic.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "caller.h"
#include "columns.h"
#include "entry.h"
#include "memplan/bounds.h"
#include "memplan/exact.h"
#include "memplan/sections.h"
#include "memplan/solve.h"
#include "outside.h"
#include "parts.h"
#include "settings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

using Numbers = Column<std::int64_t>;
using Rows = Column<std::int32_t>;

// The rows of several columns are read together, so no column may be shorter than the first.
void require_rows(const char* name, const Numbers& column, std::size_t rows) {
  if (column.size() == rows) return;
  throw nb::value_error((std::string(name) + " has " + std::to_string(column.size()) +
                         " rows, but must have " + std::to_string(rows))
                            .c_str());
}

// The core counts these in 32 bits, and a number that does not fit must not be truncated.
std::int32_t narrowed(const char* name, std::int64_t value) {
  const auto narrow = static_cast<std::int32_t>(value);
  if (narrow == value) return narrow;
  throw nb::value_error(
      (std::string(name) + " has " + std::to_string(value) + ", which is beyond 32 bits").c_str());
}

Problem make_problem(const Numbers& start, const Numbers& end, const Numbers& size,
                     const Numbers& alignment, const Numbers& pin, const Numbers& hint,
                     const Numbers& gap_buffer, const Numbers& gap_start, const Numbers& gap_end,
                     const Numbers& gap_lower, const Numbers& gap_upper,
                     const Numbers& reserved_lower, const Numbers& reserved_upper,
                     std::optional<Bytes> capacity,
                     const std::optional<std::pair<Numbers, Rows>>& conflicts,
                     const std::optional<std::pair<Numbers, Numbers>>& groups) {
  Problem problem;
  problem.start = copied(start);
  problem.end = copied(end);
  problem.size = copied(size);
  problem.alignment = copied(alignment);
  problem.pin = copied(pin);
  problem.hint = copied(hint);
  problem.capacity = capacity;

  require_rows("gap_start", gap_start, gap_buffer.size());
  require_rows("gap_end", gap_end, gap_buffer.size());
  require_rows("gap_lower", gap_lower, gap_buffer.size());
  require_rows("gap_upper", gap_upper, gap_buffer.size());
  problem.gaps.resize(gap_buffer.size());
  for (std::size_t i = 0; i < problem.gaps.size(); ++i) {
    const bool holds_nothing = gap_lower(i) == kNoOffset && gap_upper(i) == kNoOffset;
    problem.gaps[i] = {narrowed("gap_buffer", gap_buffer(i)), gap_start(i), gap_end(i),
                       holds_nothing ? 0 : gap_lower(i), holds_nothing ? 0 : gap_upper(i)};
  }

  require_rows("reserved_upper", reserved_upper, reserved_lower.size());
  problem.reserved.resize(reserved_lower.size());
  for (std::size_t i = 0; i < problem.reserved.size(); ++i) {
    problem.reserved[i] = {reserved_lower(i), reserved_upper(i)};
  }
  if (conflicts) {
    problem.conflicts.begin = copied(conflicts->first);
    problem.conflicts.other = copied(conflicts->second);
  }
  if (groups) {
    const Numbers& group = groups->first;
    for (std::size_t i = 0; i < group.size(); ++i) {
      problem.group.push_back(narrowed("group", group(i)));
    }
    problem.lead = copied(groups->second);
  }
  return problem;
}

Plan call_solve(const Problem& problem, const std::string& solver, bool minimize,
                std::optional<double> seconds, std::optional<std::int64_t> nodes, int threads,
                std::uint64_t seed, const nb::typed<nb::dict, nb::str, nb::object>& options,
                std::optional<Watcher> progress, std::optional<RoundTracer> trace,
                const std::optional<std::string>& proof, const Outside* outside) {
  Caller caller(std::move(progress), std::move(trace));
  SolveOptions chosen = asked(solver, minimize, seconds, nodes, threads, seed, outside, &caller);
  set_rows(options_of(&chosen), solver, options, [](const Setter& set) { return set; });
  if (caller.watches()) {
    chosen.progress = [&caller](const Progress& known) { caller.watch(known); };
  }
  if (caller.traces()) {
    chosen.trace = [&caller](const Round& round) { caller.trace(round); };
  }
  std::ofstream log;
  if (proof) {
    log.open(*proof, std::ios::app | std::ios::binary);
    if (!log) throw nb::value_error(("cannot write to " + *proof).c_str());
    chosen.proof = &log;
  }

  Plan plan = search_for(&caller, &chosen, [&] { return solve(problem, chosen); });
  plan.stats.interrupted = plan.stats.interrupted || caller.interrupted();
  return plan;
}

Outside exact_search() {
  OutsideSolver exact;
  exact.is = {"exact", "branch and bound", 0, 0};
  exact.search = [](const Problem& problem, const Sections& sections, Bytes limit,
                    std::int64_t nodes, Stopper& stopper) {
    return exact_fit(problem, sections, limit, ExactOptions(), nodes, 1, 0, stopper);
  };
  return {std::make_shared<OutsideSolver>(std::move(exact)), {}};
}

nb::tuple call_lower_bound(const Problem& problem) {
  Bound bound;
  Time start = 0;
  Time end = 0;
  {
    const nb::gil_scoped_release released;
    if (const std::string fault = check(problem); !fault.empty()) {
      throw std::invalid_argument(fault);
    }
    const Sections sections = sweep(problem);
    bound = lower_bound(problem, sections);
    if (bound.section >= 0) {
      start = sections.start[bound.section];
      end = sections.end[bound.section];
    }
  }
  if (bound.section < 0) return nb::make_tuple(bound.bytes, bound.rule, nb::none(), nb::none());
  return nb::make_tuple(bound.bytes, bound.rule, start, end);
}

// Shares the memory of the plan, which lives as long as the array does.
template <typename T>
Array<T, 1> view(nb::handle plan, const std::vector<T>& column) {
  return Array<T, 1>(column.data(), {column.size()}, plan);
}

}  // namespace

}  // namespace memplan::python

// The functions that Python calls are below. This is the expansion of nanobind's NB_MODULE.
#define PyInit__core init_of_nanobind
NB_MODULE(_core, m) {
  using memplan::Plan;
  using memplan::Problem;
  namespace py = memplan::python;

#ifndef MEMPLAN_ASSERTIONS
  // A program may still hold objects when it ends (a traceback, a fixture of pytest). That is no
  // leak of ours, and users cannot act on a warning. Builds with assertions count such objects.
  nb::set_leak_warnings(false);
#endif
  m.doc() = "The C++ core of memplan. `memplan.solvers` is the door to it.";

  nb::class_<Problem>(m, "Problem", "Columns, copied. Optional ones may be empty.")
      .def(
          "__init__",
          [](Problem* self, const py::Numbers& start, const py::Numbers& end,
             const py::Numbers& size, const py::Numbers& alignment, const py::Numbers& pin,
             const py::Numbers& hint, const py::Numbers& gap_buffer, const py::Numbers& gap_start,
             const py::Numbers& gap_end, const py::Numbers& gap_lower, const py::Numbers& gap_upper,
             const py::Numbers& reserved_lower, const py::Numbers& reserved_upper,
             std::optional<memplan::Bytes> capacity,
             const std::optional<std::pair<py::Numbers, py::Rows>>& conflicts,
             const std::optional<std::pair<py::Numbers, py::Numbers>>& groups) {
            new (self) Problem(py::make_problem(
                start, end, size, alignment, pin, hint, gap_buffer, gap_start, gap_end, gap_lower,
                gap_upper, reserved_lower, reserved_upper, capacity, conflicts, groups));
          },
          "start"_a, "end"_a, "size"_a, "alignment"_a, "pin"_a, "hint"_a, "gap_buffer"_a,
          "gap_start"_a, "gap_end"_a, "gap_lower"_a, "gap_upper"_a, "reserved_lower"_a,
          "reserved_upper"_a, "capacity"_a.none(), "conflicts"_a = nb::none(),
          "groups"_a = nb::none())
      .def(
          "check", [](const Problem& problem) { return check(problem); },
          "One sentence on what is wrong, or an empty string.");

  nb::class_<Plan>(m, "Plan", "The answer to one call of `solve`.")
      .def_prop_ro("status", [](const Plan& plan) { return memplan::name(plan.status); })
      .def_prop_ro("has_offsets", &Plan::has_offsets)
      .def_prop_ro(
          "offsets",
          [](nb::handle_t<Plan> self) { return py::view(self, nb::inst_ptr<Plan>(self)->offsets); },
          "In bytes, one per buffer; empty without a plan.")
      .def_ro("peak", &Plan::peak, "In bytes; 0 without a plan.")
      .def_ro("lower_bound", &Plan::lower_bound)
      .def_prop_ro(
          "conflict",
          [](nb::handle_t<Plan> self) {
            return py::view(self, nb::inst_ptr<Plan>(self)->conflict);
          },
          "Rows that cannot be placed together.")
      .def_prop_ro("solver", [](const Plan& plan) { return plan.stats.solver; })
      .def_prop_ro("nodes", [](const Plan& plan) { return plan.stats.nodes; })
      .def_prop_ro("restarts", [](const Plan& plan) { return plan.stats.restarts; })
      .def_prop_ro("backtracks", [](const Plan& plan) { return plan.stats.backtracks; })
      .def_prop_ro("major_backtracks", [](const Plan& plan) { return plan.stats.major_backtracks; })
      .def_prop_ro(
          "seconds", [](const Plan& plan) { return plan.stats.seconds; }, "By phase.")
      .def_prop_ro("note", [](const Plan& plan) { return plan.stats.note; })
      .def_prop_ro("interrupted", [](const Plan& plan) { return plan.stats.interrupted; });

  nb::class_<py::Outside>(m, "Outside", "A solver of another native module, with its options.");
  m.def("solve", &py::call_solve, "problem"_a, "solver"_a, "minimize"_a, "seconds"_a.none(),
        "nodes"_a.none(), "threads"_a, "seed"_a, "options"_a, "progress"_a.none(), "trace"_a.none(),
        "proof"_a.none(), "outside"_a.none() = nb::none(),
        "Runs one solver without the GIL; Ctrl-C ends it with its best plan. `progress` is called "
        "with seconds, peak, bound, phase and nodes, `trace` with each round; a refutation is "
        "added to the file `proof`. `outside` runs in place of the solver of that name.");
  m.def("exact_search", &py::exact_search, "The exact search, for modules that have it not.");
  m.def("lower_bound", &py::call_lower_bound, "problem"_a,
        nb::sig("def lower_bound(problem: Problem) -> tuple[int, str, int | None, int | None]"),
        "Bytes, the rule that gave them, and start and end of the section, if it is of one.");
  m.def("version", [] { return MEMPLAN_VERSION; });
  m.def(
      "set_stopped", [](bool stopped) { py::stop_of_thread() = stopped; }, "stopped"_a,
      "Whether all searches that this thread begins end at once, as after Ctrl-C.");
  m.def("greedy_orders", &memplan::greedy_orders, "The names that the option `orders` may have.");
  py::bind_solvers(m);
  py::bind_repacker(m);
  py::bind_order(m);
  py::bind_again(m);
  py::bind_apart(m);
  py::bind_choice(m);
  py::bind_compat(m);
  py::bind_streams(m);
}
#undef PyInit__core

extern "C" NB_EXPORT PyObject* PyInit__core() { return memplan::python::enter(init_of_nanobind); }
