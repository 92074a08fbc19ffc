#include "cuda_memory.h"

#include <dlfcn.h>

#include <new>
#include <stdexcept>
#include <string>

namespace memplan {
namespace {

template <typename Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) {
    throw std::runtime_error(std::string(name) +
                             " is not in this process; CUDA needs a PyTorch that was built for it");
  }
}

}  // namespace

const CudaRuntime& CudaRuntime::get() {
  static const CudaRuntime runtime;
  return runtime;
}

CudaRuntime::CudaRuntime() {
  find(malloc_, "cudaMalloc");
  find(free_, "cudaFree");
  find(get_device_, "cudaGetDevice");
  find(set_device_, "cudaSetDevice");
  find(stream_synchronize_, "cudaStreamSynchronize");
  find(get_last_error_, "cudaGetLastError");
}

void* CudaRuntime::allocate(int device, std::size_t bytes) const {
  int before = device;
  get_device_(&before);
  if (before != device) set_device_(device);
  void* memory = nullptr;
  if (malloc_(&memory, bytes) != 0) {
    // Clear the error, or PyTorch's next call of CUDA would report it.
    get_last_error_();
    memory = nullptr;
  }
  if (before != device) set_device_(before);
  return memory;
}

void CudaRuntime::release(int device, void* memory) const {
  int before = device;
  get_device_(&before);
  if (before != device) set_device_(device);
  free_(memory);
  if (before != device) set_device_(before);
}

CudaMemory& CudaMemory::get() {
  static auto* const memory = new CudaMemory;
  return *memory;
}

void* CudaMemory::allocate(std::size_t bytes, int device, Stream stream) {
  const CudaRuntime& runtime = CudaRuntime::get();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*>& kept = kept_[{device, stream, bytes}];
  if (!kept.empty()) {
    void* const memory = kept.back();
    kept.pop_back();
    return memory;
  }
  if (void* const memory = runtime.allocate(device, bytes)) return memory;
  free_kept();
  return runtime.allocate(device, bytes);
}

void CudaMemory::release(void* memory, std::size_t bytes, int device, Stream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    kept_[{device, stream, bytes}].push_back(memory);
  } catch (const std::bad_alloc&) {
    // The host has no memory for the book-keeping, so the block cannot be kept. No caller can help.
    CudaRuntime::get().release(device, memory);
  }
}

void CudaMemory::trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_kept();
}

void CudaMemory::free_kept() {
  for (const auto& [request, blocks] : kept_) {
    for (void* const block : blocks) CudaRuntime::get().release(std::get<0>(request), block);
  }
  kept_.clear();
}

}  // namespace memplan
