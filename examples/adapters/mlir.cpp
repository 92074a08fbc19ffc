// A planner for the static allocations of MLIR, with the signature of its bestFitMemoryPlanner.
//
// Add this file and memplan.cpp to MLIRBufferizationTransforms, and call memplanMemoryPlanner where
// the pass calls the other. Both compile as LLVM does, with -fno-exceptions -fno-rtti.
#include "mlir/Dialect/Bufferization/Transforms/StaticMemoryPlanning.h"
#include "rows.h"

namespace mlir {
namespace bufferization {

// Times are as in MLIR: an allocation is freed at timeEnd. The arena's own alignment is the
// caller's: it must be a multiple of all others, as for MLIR's planners.
llvm::SmallVector<int64_t> memplanMemoryPlanner(int64_t arenaAlignment,
                                                llvm::ArrayRef<MemoryPlannerAlloc> allocs) {
  std::vector<memplan_adapters::Row> rows;
  for (const MemoryPlannerAlloc& each : allocs) {
    rows.push_back({each.timeStart, each.timeEnd, each.sizeInBytes, each.alignment});
  }
  int64_t peak = 0;
  const std::vector<int64_t> offsets = memplan_adapters::plan_rows(rows, &peak);
  if (offsets.size() != allocs.size()) return bestFitMemoryPlanner(arenaAlignment, allocs);
  return llvm::SmallVector<int64_t>(offsets.begin(), offsets.end());
}

}  // namespace bufferization
}  // namespace mlir
