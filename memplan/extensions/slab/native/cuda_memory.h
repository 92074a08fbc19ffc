// Device memory that no plan places.
//
// A pluggable allocator replaces PyTorch's caching allocator in the whole process. But cudaMalloc
// is slow and cudaFree waits for the device, and a program that runs one model many times requests
// the same sizes each time. So released blocks are kept, and serve the next request of the same
// size on the same stream. That is safe while the device still works on the block, because the work
// of one stream runs in order.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace memplan {

using Stream = void*;  // a cudaStream_t

// The functions of CUDA's runtime that are used here. They are looked up in the libraries that the
// process has loaded, so that the extension compiles and works on machines without CUDA.
class CudaRuntime {
 public:
  // Throws std::runtime_error if no runtime is loaded.
  static const CudaRuntime& get();

  // Returns nullptr if the device has no more memory.
  void* allocate(int device, std::size_t bytes) const;
  void release(int device, void* memory) const;
  // Blocks until the device has done all work of a stream.
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
  // The one object of the process; it is never destroyed, since tensors may outlive all others.
  static CudaMemory& get();

  // Returns nullptr if the device has no more memory even after all kept blocks are freed.
  void* allocate(std::size_t bytes, int device, Stream stream);
  void release(void* memory, std::size_t bytes, int device, Stream stream);

  // Frees all kept blocks.
  void trim();

 private:
  using Request = std::tuple<int, Stream, std::size_t>;

  void free_kept();

  std::mutex mutex_;
  std::map<Request, std::vector<void*>> kept_;
};

}  // namespace memplan
