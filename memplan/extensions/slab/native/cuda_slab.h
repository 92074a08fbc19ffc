// Slabs in the memory of CUDA devices.
//
// Three functions of C are registered with PyTorch once per process
// (torch.cuda.memory.CUDAPluggableAllocator):
//
//     memplan_cuda_allocate        returns a planned range of the slab, or CudaMemory
//     memplan_cuda_release         returns memory to its owner, on any thread
//     memplan_cuda_record_stream   notes another stream of a block, to wait for it at the end
//
// A planned range can be reused immediately after its release, since work on one stream runs in
// order. So a slab belongs to one stream, and requests of other streams get memory elsewhere.
#pragma once

#include "cuda_memory.h"
#include "memory.h"

namespace memplan {

// The slabs of a stream.
class CudaStream final : public Memory {
 public:
  // Returns the one object of a stream, which is never destroyed.
  static CudaStream& get(int device, Stream stream);

  void* map(std::size_t bytes, void* slab) override;
  void unmap(void* memory, std::size_t bytes) override;

 private:
  CudaStream(int device, Stream stream) : device_(device), stream_(stream) {}

  const int device_;
  const Stream stream_;
};

}  // namespace memplan
