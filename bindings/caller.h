// Calls back into Python while a solver runs.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "memplan/budget.h"
#include "memplan/solve.h"

namespace memplan::python {

namespace nb = nanobind;

// The arguments are seconds, the best peak, the lower bound, the phase and the nodes.
using Watcher =
    nb::typed<nb::callable, void(double, std::optional<Bytes>, Bytes, std::string, std::int64_t)>;

// The arguments describe a round: seconds, engine, stage, part, target, bound, peak, nodes,
// conflicts, what ended it.
using RoundTracer =
    nb::typed<nb::callable, void(double, std::string, std::string, std::string, Bytes, Bytes,
                                 std::optional<Bytes>, std::int64_t, std::int64_t, std::string)>;

// Whether all searches that a thread begins end at once, as after Ctrl-C. memplan.solvers.stopping
// sets it for as long as one question lasts, which may take many searches.
inline std::atomic<bool>& stop_of_thread() {
  thread_local std::atomic<bool> stop{false};
  return stop;
}

// The callbacks from the core to its caller while the GIL is released. Ctrl-C ends the search with
// the best plan, also while `watcher`, `tracer` or a policy runs. An exception of one of these, or
// of another signal handler, is stored and thrown when the search has ended.
class Caller {
 public:
  Caller(std::optional<Watcher> watcher, std::optional<RoundTracer> tracer)
      : watcher_(std::move(watcher)), tracer_(std::move(tracer)) {}

  bool stops() {
    const nb::gil_scoped_acquire gil;
    if (!interrupted_ && !raised_ && PyErr_CheckSignals() != 0) take(nb::python_error());
    interrupted_ = interrupted_ || stop_;  // a signal handler may have set it just now
    return interrupted_ || raised_;
  }
  // Runs a function with the GIL, unless the search is to end; stores its exception.
  template <typename Function>
  void call(const Function& function) {
    const nb::gil_scoped_acquire gil;
    if (interrupted_ || raised_) return;
    try {
      function();
    } catch (const nb::python_error& error) {
      take(error);
    }
  }
  void watch(const Progress& progress) {
    call([&] {
      std::optional<Bytes> peak;
      if (progress.has_plan) peak = progress.peak;
      (*watcher_)(progress.seconds, peak, progress.lower_bound, progress.phase, progress.nodes);
    });
  }
  void trace(const Round& round) {
    call([&] {
      std::optional<Bytes> peak;
      if (round.has_plan) peak = round.peak;
      (*tracer_)(round.seconds, round.engine, round.stage, round.part, round.target,
                 round.lower_bound, peak, round.nodes, round.conflicts, round.ended_by);
    });
  }
  bool watches() const { return watcher_.has_value(); }
  bool traces() const { return tracer_.has_value(); }
  bool interrupted() const { return interrupted_; }
  void rethrow() {
    if (raised_) throw nb::python_error(*raised_);
  }

 private:
  void take(const nb::python_error& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) {
      interrupted_ = true;
    } else {
      raised_.emplace(error);
    }
  }

  std::optional<Watcher> watcher_;
  std::optional<RoundTracer> tracer_;
  const std::atomic<bool>& stop_ = stop_of_thread();  // of the caller, not of a worker
  bool interrupted_ = false;
  std::optional<nb::python_error> raised_;
};

// Sets the limits of a search that are given.
inline void limit(Budget* budget, std::optional<double> seconds,
                  std::optional<std::int64_t> nodes) {
  if (seconds) budget->seconds = *seconds;
  if (nodes) budget->nodes = *nodes;
}

// Runs a search with these options without the GIL. It asks the caller whether it is to stop.
template <typename Options, typename Search>
auto search_for(Caller* caller, Options* options, const Search& search) {
  options->interrupt = [caller] { return caller->stops(); };
  auto found = [&] {
    const nb::gil_scoped_release released;
    return search();
  }();
  caller->rethrow();
  return found;
}

}  // namespace memplan::python
