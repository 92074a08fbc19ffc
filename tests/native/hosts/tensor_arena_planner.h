// The interface of onnx2c that examples/adapters/onnx2c.cpp needs, written down by us.
#pragma once

#include <cstddef>
#include <vector>

namespace toC {

class Tensor;

struct TensorLifetime {
  Tensor* tensor = nullptr;
  size_t first_use = 0;
  size_t last_use = 0;
  size_t size_bytes = 0;
  size_t alignment = 1;
};

struct ArenaAllocation {
  Tensor* tensor = nullptr;
  size_t offset = 0;
  size_t size = 0;
  size_t alignment = 1;
  size_t first_use = 0;
  size_t last_use = 0;
};

struct ArenaPlan {
  std::vector<ArenaAllocation> allocations;
  size_t arena_size = 0;
};

class TensorArenaPlanner {
 public:
  ArenaPlan plan(const std::vector<TensorLifetime>& lifetimes) const;
};

}  // namespace toC
