// Slabs in the memory of CUDA devices.
//
// PyTorch is told of three C functions, once per process
// (torch.cuda.memory.CUDAPluggableAllocator):
//
//     memplan_cuda_allocate        a planned range of the slab, or CudaMemory
//     memplan_cuda_release         back to where it came from, on whatever thread
//     memplan_cuda_record_stream   the block is used by one more stream; wait for it at the end
//
// A planned range that one kernel has released may be another's at once, since work on one stream
// runs in order. So a slab belongs to one stream, and what other streams ask for comes from
// elsewhere.
#pragma once

#include "cuda_memory.h"
#include "memory.h"

namespace memplan {

// The slabs of a stream.
class CudaStream final : public Memory {
 public:
  // Always the same one for a stream; never unmade.
  static CudaStream& get(int device, Stream stream);

  void* map(std::size_t bytes, void* slab) override;
  void unmap(void* memory, std::size_t bytes) override;

 private:
  CudaStream(int device, Stream stream) : device_(device), stream_(stream) {}

  const int device_;
  const Stream stream_;
};

}  // namespace memplan
