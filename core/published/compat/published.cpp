#include "memplan/published.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "memplan/minimalloc_compat.h"

namespace minimalloc {
inline namespace memplan_compat {

std::shared_ptr<const memplan::OutsideSolver> Published(const SolverParams& params) {
  memplan::PublishedOptions options;
  memplan::MiniMallocOptions& how = options.minimalloc;
  how.canonical = params.canonical_only;
  how.section_inference = params.section_inference;
  how.monotonic_floor = params.monotonic_floor;
  how.unallocated_floor = params.unallocated_floor;
  how.dominance = params.check_dominance;
  how.hatless = params.hatless_pruning;
  how.dynamic_ordering = params.dynamic_ordering;
  how.static_ordering = params.static_preordering;
  how.dynamic_decomposition = params.dynamic_decomposition;
  how.orders = params.preordering_heuristics;
  for (std::string& order : how.orders) {
    // Letters that are no keys have no effect in the library of that name.
    const std::string_view known = "WATZLUCO";
    const auto unknown = [&](char key) { return known.find(key) == std::string_view::npos; };
    order.erase(std::remove_if(order.begin(), order.end(), unknown), order.end());
  }
  return memplan::published_solver("minimalloc", options);
}

}  // namespace memplan_compat
}  // namespace minimalloc
