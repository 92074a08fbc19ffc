// The interface of MLIR that examples/adapters/mlir.cpp needs, written down by us.
#pragma once

#include <cstdint>
#include <vector>

namespace llvm {
template <typename T>
using SmallVector = std::vector<T>;
template <typename T>
using ArrayRef = const std::vector<T>&;
}  // namespace llvm

namespace mlir {
namespace bufferization {

struct MemoryPlannerAlloc {
  int64_t sizeInBytes = 0;
  int64_t alignment = 1;
  int64_t timeStart = 0;
  int64_t timeEnd = 0;
};

llvm::SmallVector<int64_t> bestFitMemoryPlanner(int64_t arenaAlignment,
                                                llvm::ArrayRef<MemoryPlannerAlloc> allocs);

}  // namespace bufferization
}  // namespace mlir
