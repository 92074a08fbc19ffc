// Device memory that no plan places.
//
// A pluggable allocator takes the place of PyTorch's caching allocator, for the whole process. But
// cudaMalloc is slow and cudaFree waits for the device; and a program that runs one model over and
// over asks for the same sizes over and over. So what was given back is kept, and serves the next
// request of the same size on the same stream. On one stream work runs in order: the device may
// still be at work on the block when its next owner gets it.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace memplan {

using Stream = void*;  // a cudaStream_t

// What is needed of CUDA's runtime, found among the libraries that the process has loaded already:
// so this compiles, and the rest of the extension works, on machines without CUDA.
class CudaRuntime {
 public:
  // Throws std::runtime_error where there is none.
  static const CudaRuntime& get();

  // nullptr if the device has no more memory.
  void* allocate(int device, std::size_t bytes) const;
  void release(int device, void* memory) const;
  // Until the device has done all that it was given on a stream.
  void wait(Stream stream) const { stream_synchronize_(stream); }

 private:
  CudaRuntime();

  int (*malloc_)(void**, std::size_t);
  int (*free_)(void*);
  int (*get_device_)(int*);
  int (*set_device_)(int);
  int (*stream_synchronize_)(Stream);
  int (*get_last_error_)();
};

class CudaMemory {
 public:
  // Of the process; never unmade, since tensors may outlive everything.
  static CudaMemory& get();

  // nullptr if the device has no more memory, not even without what is kept.
  void* allocate(std::size_t bytes, int device, Stream stream);
  void release(void* memory, std::size_t bytes, int device, Stream stream);

  // Gives back to the devices what is kept.
  void trim();

 private:
  using Request = std::tuple<int, Stream, std::size_t>;

  void free_kept();

  std::mutex mutex_;
  std::map<Request, std::vector<void*>> kept_;
};

}  // namespace memplan
