#include "options.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

namespace nb = nanobind;

namespace memplan::python {

namespace {

using Names = std::vector<std::string>;

template <typename Options>
struct Switch {
  const char* name;
  bool Options::* member;
};

constexpr Switch<GreedyOptions> kGreedy[] = {
    {"first_fit", &GreedyOptions::first_fit},
    {"best_fit", &GreedyOptions::best_fit},
};

constexpr Switch<MiniMallocOptions> kMiniMalloc[] = {
    {"canonical", &MiniMallocOptions::canonical},
    {"section_inference", &MiniMallocOptions::section_inference},
    {"monotonic_floor", &MiniMallocOptions::monotonic_floor},
    {"unallocated_floor", &MiniMallocOptions::unallocated_floor},
    {"dominance", &MiniMallocOptions::dominance},
    {"hatless", &MiniMallocOptions::hatless},
    {"dynamic_ordering", &MiniMallocOptions::dynamic_ordering},
    {"static_ordering", &MiniMallocOptions::static_ordering},
    {"dynamic_decomposition", &MiniMallocOptions::dynamic_decomposition},
};

constexpr Switch<ExactOptions> kExact[] = {
    {"portfolio", &ExactOptions::portfolio},     {"release_dates", &ExactOptions::release_dates},
    {"backjumping", &ExactOptions::backjumping}, {"gap_jump", &ExactOptions::gap_jump},
    {"contraction", &ExactOptions::contraction}, {"decomposition", &ExactOptions::decomposition},
    {"nogoods", &ExactOptions::nogoods},         {"twins", &ExactOptions::twins},
    {"full_span", &ExactOptions::full_span},     {"mirror", &ExactOptions::mirror},
};

[[noreturn]] void refuse(const std::string& what) { throw nb::value_error(what.c_str()); }

template <typename T>
T value_of(nb::handle value, const std::string& solver, const std::string& name, const char* kind) {
  T taken{};
  if (!nb::try_cast(value, taken, false)) {
    refuse("the option " + name + " of " + solver + " must be " + kind);
  }
  return taken;
}

// Whether `name` is one of these switches; if so, sets it.
template <typename Options, std::size_t N>
bool set(const Switch<Options> (&switches)[N], Options* options, const std::string& solver,
         const std::string& name, nb::handle value) {
  for (const auto& each : switches) {
    if (name != each.name) continue;
    options->*each.member = value_of<bool>(value, solver, name, "True or False");
    return true;
  }
  return false;
}

bool set_names(Names* names, const std::string& solver, const std::string& name, nb::handle value) {
  if (name != "orders") return false;
  // A string is a sequence of strings too, of one letter each: never what was meant.
  if (nb::isinstance<nb::str>(value)) refuse("the option orders of " + solver + " must be a list");
  *names = value_of<Names>(value, solver, name, "a list of names");
  return true;
}

bool set_switch(SolveOptions* options, const std::string& name, nb::handle value) {
  const std::string& solver = options->solver;
  if (solver == "minimalloc") {
    return set(kMiniMalloc, &options->minimalloc, solver, name, value) ||
           set_names(&options->minimalloc.orders, solver, name, value);
  }
  const bool greedy = solver == "greedy" || solver == "auto";
  const bool exact = solver == "exact" || solver == "auto";
  return (greedy && set(kGreedy, &options->greedy, solver, name, value)) ||
         (greedy && set_names(&options->greedy.orders, solver, name, value)) ||
         (exact && set(kExact, &options->exact, solver, name, value));
}

}  // namespace

void set_switches(SolveOptions* options, const nb::dict& given) {
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (!set_switch(options, name, value)) refuse(options->solver + " has no option " + name);
  }
}

}  // namespace memplan::python
