#include "compat.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "caller.h"
#include "memplan/minimalloc_compat.h"
#include "outside.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;
using GapRow = std::tuple<std::int64_t, std::int64_t, std::optional<Pair>>;
// The fields of a buffer, in the order of the header.
using Row = std::tuple<std::string, Pair, std::int64_t, std::int64_t, std::vector<GapRow>,
                       std::optional<std::int64_t>, std::optional<std::int64_t>>;

minimalloc::Buffer buffer_of(const Row& row) {
  const auto& [id, lifespan, size, alignment, gaps, offset, hint] = row;
  minimalloc::Buffer buffer{id,  {lifespan.first, lifespan.second}, size, alignment, {}, offset,
                            hint};
  for (const auto& [lower, upper, window] : gaps) {
    minimalloc::Gap gap{{lower, upper}, std::nullopt};
    if (window) gap.window = minimalloc::Window{window->first, window->second};
    buffer.gaps.push_back(gap);
  }
  return buffer;
}

minimalloc::Problem problem_of(const std::vector<Row>& rows, std::int64_t capacity) {
  minimalloc::Problem problem;
  problem.capacity = capacity;
  for (const Row& row : rows) problem.buffers.push_back(buffer_of(row));
  return problem;
}

Row row_of(const minimalloc::Buffer& buffer) {
  std::vector<GapRow> gaps;
  for (const minimalloc::Gap& gap : buffer.gaps) {
    std::optional<Pair> window;
    if (gap.window) window = Pair{gap.window->lower(), gap.window->upper()};
    gaps.emplace_back(gap.lifespan.lower(), gap.lifespan.upper(), window);
  }
  return {buffer.id,   {buffer.lifespan.lower(), buffer.lifespan.upper()},
          buffer.size, buffer.alignment,
          gaps,        buffer.offset,
          buffer.hint};
}

// Searches for a problem; another thread may cancel it.
class CompatSolver {
 public:
  CompatSolver(double seconds, const std::map<std::string, bool>& switches,
               const std::vector<std::string>& orders, const Outside* published) {
    set_switches(&params_, switches, orders);
    params_.timeout = std::chrono::duration<double>(seconds);
    if (published == nullptr) return;
    params_.published = [solver = published->solver](const minimalloc::SolverParams&) {
      return solver;
    };
  }

  void cancel() { cancelled_ = true; }

  std::tuple<int, std::string, std::vector<std::int64_t>, std::int64_t, std::int64_t> solve(
      const std::vector<Row>& rows, std::int64_t capacity) {
    minimalloc::Solution found;
    const auto [outcome, nodes] = search(rows, capacity, [&](const auto&... arguments) {
      return minimalloc::detail::Solve(arguments..., &found);
    });
    return {outcome.code, outcome.message, found.offsets, found.height, nodes};
  }

  std::tuple<int, std::string, std::vector<std::int64_t>, std::int64_t> find_infeasible(
      const std::vector<Row>& rows, std::int64_t capacity) {
    std::vector<minimalloc::BufferIdx> found;
    const auto [outcome, nodes] = search(rows, capacity, [&](const auto&... arguments) {
      return minimalloc::detail::FindInfeasible(arguments..., &found);
    });
    return {outcome.code, outcome.message, found, nodes};
  }

 private:
  template <typename Search>
  std::pair<minimalloc::detail::Outcome, std::int64_t> search(const std::vector<Row>& rows,
                                                              std::int64_t capacity,
                                                              const Search& run) {
    const minimalloc::Problem problem = problem_of(rows, capacity);
    Caller caller(std::nullopt, std::nullopt);
    cancelled_ = false;
    const auto interrupt = [&] { return cancelled_ || caller.stops(); };
    minimalloc::detail::Outcome outcome;
    std::int64_t nodes = 0;
    {
      const nb::gil_scoped_release released;
      outcome = run(problem, params_, interrupt, &nodes);
    }
    caller.rethrow();
    if (caller.interrupted()) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw nb::python_error();
    }
    return {outcome, nodes};
  }

  minimalloc::SolverParams params_;
  std::atomic<bool> cancelled_{false};
};

std::tuple<int, std::string, std::vector<Row>> read(const std::string& text) {
  minimalloc::Problem problem;
  const minimalloc::detail::Outcome outcome = minimalloc::detail::FromCsv(text, &problem);
  std::vector<Row> rows;
  if (outcome.code == 0) {
    for (const minimalloc::Buffer& buffer : problem.buffers) rows.push_back(row_of(buffer));
  }
  return {outcome.code, outcome.message, rows};
}

std::string write(const std::vector<Row>& rows,
                  const std::optional<std::vector<std::int64_t>>& offsets, bool old_format) {
  const minimalloc::Problem problem = problem_of(rows, 0);
  if (!offsets) return minimalloc::ToCsv(problem, nullptr, old_format);
  if (offsets->size() != rows.size()) {
    throw nb::value_error("a solution has one offset for each buffer");
  }
  const minimalloc::Solution solution{*offsets, 0};
  return minimalloc::ToCsv(problem, &solution, old_format);
}

int validate(const std::vector<Row>& rows, std::int64_t capacity,
             const std::vector<std::int64_t>& offsets, std::int64_t height) {
  return minimalloc::Validate(problem_of(rows, capacity), {offsets, height});
}

std::optional<std::int64_t> effective_size(const Row& below, const Row& above) {
  return buffer_of(below).effective_size(buffer_of(above));
}

}  // namespace

void bind_compat(nb::module_& m) {
  nb::class_<CompatSolver>(m, "CompatSolver", "The solver of memplan.extensions.minimalloc.")
      .def(
          nb::init<double, std::map<std::string, bool>, std::vector<std::string>, const Outside*>(),
          "seconds"_a, "switches"_a, "orders"_a, "published"_a.none())
      .def("solve", &CompatSolver::solve, "rows"_a, "capacity"_a,
           "Code, message, offsets, height and nodes; without the GIL.")
      .def("find_infeasible", &CompatSolver::find_infeasible, "rows"_a, "capacity"_a,
           "Code, message, rows and nodes; without the GIL.")
      .def("cancel", &CompatSolver::cancel);
  m.def("compat_read", &read, "text"_a, "Code, message and buffers of a table.");
  m.def("compat_write", &write, "rows"_a, "offsets"_a.none(), "old_format"_a, "A table.");
  m.def("compat_validate", &validate, "rows"_a, "capacity"_a, "offsets"_a, "height"_a,
        "What is wrong with a solution, as a number; 0 is nothing.");
  m.def("compat_effective_size", &effective_size, "below"_a, "above"_a,
        "The bytes between the offsets of two buffers; `None` if they never meet.");
}

}  // namespace memplan::python
