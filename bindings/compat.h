// The switches of the compat header, for memplan.extensions.minimalloc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "memplan/minimalloc_compat.h"

namespace memplan::python {

// Sets the switches of these names, and the orders.
inline void set_switches(minimalloc::SolverParams* params,
                         const std::map<std::string, bool>& switches,
                         const std::vector<std::string>& orders) {
  using Params = minimalloc::SolverParams;
  const std::map<std::string, bool Params::*> known = {
      {"minimize_capacity", &Params::minimize_capacity},
      {"canonical_only", &Params::canonical_only},
      {"section_inference", &Params::section_inference},
      {"dynamic_ordering", &Params::dynamic_ordering},
      {"check_dominance", &Params::check_dominance},
      {"unallocated_floor", &Params::unallocated_floor},
      {"static_preordering", &Params::static_preordering},
      {"dynamic_decomposition", &Params::dynamic_decomposition},
      {"monotonic_floor", &Params::monotonic_floor},
      {"hatless_pruning", &Params::hatless_pruning},
  };
  params->preordering_heuristics = orders;
  for (const auto& [name, on] : switches) params->*known.at(name) = on;
}

}  // namespace memplan::python
