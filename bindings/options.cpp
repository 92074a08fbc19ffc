#include "options.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <vector>

#include "memplan/learning.h"

namespace nb = nanobind;

namespace memplan::python {

namespace {

using Names = std::vector<std::string>;

template <typename Options>
struct Switch {
  const char* name;
  bool Options::* member;
};

constexpr Switch<SolveOptions> kFirst[] = {
    {"squeaky_wheel", &SolveOptions::squeaky_wheel},
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
    {"tiling", &ExactOptions::tiling},
};

constexpr Switch<ProverOptions> kProver[] = {
    {"learning", &ProverOptions::learning},
    {"minimisation", &ProverOptions::minimisation},
    {"lifting", &ProverOptions::lifting},
    {"set_bounds", &ProverOptions::set_bounds},
    {"overload", &ProverOptions::overload},
    {"edge_finding", &ProverOptions::edge_finding},
    {"transitivity", &ProverOptions::transitivity},
    {"cuts", &ProverOptions::cuts},
    {"foundation", &ProverOptions::foundation},
    {"symmetry", &ProverOptions::symmetry},
    {"phases", &ProverOptions::phases},
    {"restarts", &ProverOptions::restarts},
};

constexpr Switch<LargeOptions> kLarge[] = {
    {"core", &LargeOptions::core},       {"promote", &LargeOptions::promote},
    {"shells", &LargeOptions::shells},   {"portfolio", &LargeOptions::portfolio},
    {"bump", &LargeOptions::bump},       {"best_fit", &LargeOptions::best_fit},
    {"windows", &LargeOptions::windows}, {"ejection", &LargeOptions::ejection},
};

constexpr Switch<TelamallocOptions> kTelamalloc[] = {
    {"lowest_position", &TelamallocOptions::lowest_position},
    {"subproblems", &TelamallocOptions::subproblems},
    {"phases", &TelamallocOptions::phases},
    {"culprits", &TelamallocOptions::culprits},
    {"hoisting", &TelamallocOptions::hoisting},
    {"bounded", &TelamallocOptions::bounded},
    {"stuck_rule", &TelamallocOptions::stuck_rule},
};

constexpr Switch<CspOptions> kCsp[] = {
    {"area_order", &CspOptions::area_order},
    {"forward_checking", &CspOptions::forward_checking},
    {"wasted_space", &CspOptions::wasted_space},
    {"dominance", &CspOptions::dominance},
};

constexpr Switch<MetaCspOptions> kMetaCsp[] = {
    {"forward_checking", &MetaCspOptions::forward_checking},
    {"fewest_first", &MetaCspOptions::fewest_first},
    {"area_order", &MetaCspOptions::area_order},
    {"subsumption", &MetaCspOptions::subsumption},
    {"cliques", &MetaCspOptions::cliques},
    {"symmetry", &MetaCspOptions::symmetry},
};

template <typename Options>
struct Choice {
  const char* name;
  std::string Options::* member;
};

constexpr Choice<TelamallocOptions> kSelections[] = {{"select", &TelamallocOptions::select}};

constexpr Choice<SomasOptions> kSomas[] = {
    {"objects", &SomasOptions::objects},
    {"sort", &SomasOptions::sort},
    {"fit", &SomasOptions::fit},
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

// From the command line, names come as lists.
template <typename Options, std::size_t N>
bool set(const Choice<Options> (&choices)[N], Options* options, const std::string& name,
         nb::handle value) {
  for (const auto& each : choices) {
    if (name != each.name) continue;
    std::string taken;
    Names listed;
    if (!nb::try_cast(value, taken, false)) {
      if (!nb::try_cast(value, listed, false) || listed.size() != 1) {
        refuse("the option " + name + " must be one name");
      }
      taken = listed[0];
    }
    options->*each.member = taken;
    return true;
  }
  return false;
}

// The file that it comes from is Python's affair.
bool set_model(TelamallocOptions* options, const std::string& name, nb::handle value) {
  if (name != "model") return false;
  if (!nb::isinstance<BacktrackModel>(value)) refuse("the model must be a BacktrackModel");
  options->model = nb::cast<std::shared_ptr<const BacktrackModel>>(value);
  return true;
}

// Whether the solver has this option; if so, sets it in every part of the solver that has it.
bool set_option(SolveOptions* options, const std::string& name, nb::handle value) {
  const std::string& solver = options->solver;
  const bool all = solver == "auto";
  bool known = false;
  if (all || solver == "greedy" || solver == "large") {
    known |= set(kFirst, options, solver, name, value);
  }
  if (all || solver == "greedy") {
    known |= set(kGreedy, &options->greedy, solver, name, value);
    known |= set_names(&options->greedy.orders, solver, name, value);
  }
  if (all || solver == "large") known |= set(kLarge, &options->large, solver, name, value);
  if (all || solver == "exact") known |= set(kExact, &options->exact, solver, name, value);
  if (all || solver == "exact" || solver == "prover") {
    known |= set(kProver, &options->prover, solver, name, value);
  }
  if (solver == "somas") known |= set(kSomas, &options->somas, name, value);
  if (solver == "telamalloc") {
    known |= set(kTelamalloc, &options->telamalloc, solver, name, value);
    known |= set(kSelections, &options->telamalloc, name, value);
    known |= set_model(&options->telamalloc, name, value);
  }
  if (solver == "csp") known |= set(kCsp, &options->csp, solver, name, value);
  if (solver == "meta_csp") known |= set(kMetaCsp, &options->meta_csp, solver, name, value);
  if (solver == "minimalloc") {
    known |= set(kMiniMalloc, &options->minimalloc, solver, name, value);
    known |= set_names(&options->minimalloc.orders, solver, name, value);
  }
  return known;
}

}  // namespace

void set_switches(SolveOptions* options, const nb::dict& given) {
  for (const auto& [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (!set_option(options, name, value)) refuse(options->solver + " has no option " + name);
  }
}

}  // namespace memplan::python
