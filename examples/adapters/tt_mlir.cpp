// Planner::allocate of tt-mlir's D2M dialect, by memplan: the same records in, the same offsets and
// figures out. spillAllocate calls it as it calls its own.
#include <numeric>

#include "rows.h"
#include "ttmlir/Dialect/D2M/Analysis/Allocation/Planner.h"

namespace mlir::tt::d2m::allocation {

// Places the requests of each variable that its placement asks for. Live ranges include their last
// step. Sizes come rounded to what the memory asks for, so that their greatest common divisor keeps
// the offsets on the same grid.
Planner::AllocateStats allocateByMemplan(Planner::Problem& problem) {
  std::vector<Planner::Request*> requests;
  for (const Planner::Variable& variable : problem.variables) {
    if (variable.placement == Planner::Space::NA) continue;
    for (const auto index : variable.domain[static_cast<std::size_t>(variable.placement)]) {
      requests.push_back(&problem.request(index));
    }
  }
  Planner::AllocateStats stats(0, 0, 0);
  Planner::AllocSizeT grid = 0;
  for (const Planner::Request* each : requests) {
    grid = std::gcd(grid, each->size);
    stats.maxSize = std::max(stats.maxSize, each->size);
  }
  std::vector<memplan_adapters::Row> rows;
  for (const Planner::Request* each : requests) {
    rows.push_back({each->first, std::int64_t{each->last} + 1, each->size, grid});
  }
  const std::vector<std::int64_t> offsets = memplan_adapters::plan_rows(rows, &stats.memUsage);
  if (offsets.size() != rows.size()) return Planner::allocate(problem);
  for (std::size_t i = 0; i < rows.size(); ++i) requests[i]->offset = offsets[i];
  return stats;
}

}  // namespace mlir::tt::d2m::allocation
