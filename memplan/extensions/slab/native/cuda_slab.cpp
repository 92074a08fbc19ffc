#include "cuda_slab.h"

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>
#include <utility>

#include "allocator.h"
#include "region.h"

namespace memplan {
namespace {

// Maps addresses on devices to their slabs and streams. It uses a lock, which is cheap enough, as
// PyTorch takes one for every allocation on a device anyway.
class Addresses {
 public:
  static Addresses& get() {
    static auto* const addresses = new Addresses;
    return *addresses;
  }

  void add(void* memory, std::size_t bytes, Slab* slab) {
    const std::lock_guard<std::mutex> lock(mutex_);
    slabs_[static_cast<char*>(memory)] = {bytes, slab};
  }

  void remove(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    slabs_.erase(static_cast<char*>(memory));
  }

  // The slab that an address is in, or nullptr.
  Slab* slab_of(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto* const address = static_cast<char*>(memory);
    const auto after = slabs_.upper_bound(address);
    if (after == slabs_.begin()) return nullptr;
    const auto& [first, slab] = *std::prev(after);
    return static_cast<std::size_t>(address - first) < slab.bytes ? slab.slab : nullptr;
  }

  void add_stream(void* memory, Stream stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_[memory].insert(stream);
  }

  // Returns and removes the other streams that a block was used on.
  std::set<Stream> take_streams(void* memory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = streams_.find(memory);
    if (found == streams_.end()) return {};
    std::set<Stream> streams = std::move(found->second);
    streams_.erase(found);
    return streams;
  }

 private:
  struct Extent {
    std::size_t bytes;
    Slab* slab;
  };

  std::mutex mutex_;
  std::map<char*, Extent> slabs_;
  std::unordered_map<void*, std::set<Stream>> streams_;
};

void report(void* memory, std::int64_t bytes, int device) {
  if (!c10::memoryProfilingEnabled()) return;
  const c10::Device where(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
  c10::reportMemoryUsageToProfiler(memory, bytes, 0, 0, where);
}

}  // namespace

CudaStream& CudaStream::get(int device, Stream stream) {
  static auto* const mutex = new std::mutex;
  static auto* const streams = new std::map<std::pair<int, Stream>, CudaStream*>;
  const std::lock_guard<std::mutex> lock(*mutex);
  CudaStream*& found = (*streams)[{device, stream}];
  if (found == nullptr) found = new CudaStream(device, stream);
  return *found;
}

void* CudaStream::map(std::size_t bytes, void* slab) {
  void* const memory = CudaMemory::get().allocate(bytes, device_, stream_);
  if (memory == nullptr) return nullptr;
  try {
    Addresses::get().add(memory, bytes, static_cast<Slab*>(slab));
  } catch (const std::bad_alloc&) {
    CudaMemory::get().release(memory, bytes, device_, stream_);
    throw;
  }
  return memory;
}

void CudaStream::unmap(void* memory, std::size_t bytes) {
  Addresses::get().remove(memory);
  CudaMemory::get().release(memory, bytes, device_, stream_);
}

}  // namespace memplan

#define MEMPLAN_EXPORT extern "C" __attribute__((visibility("default")))

// torch/csrc/cuda/CUDAPluggableAllocator.h calls these functions with a cudaStream_t, which is a
// pointer. They may throw, as PyTorch handles these exceptions like its own.

MEMPLAN_EXPORT void* memplan_cuda_allocate(std::size_t bytes, int device, void* stream) {
  using namespace memplan;
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (Slab* const slab = current_slab; slab != nullptr && !slab->is_in(Region::get())) {
    if (slab->is_in(CudaStream::get(device, stream))) {
      memory = slab->place(bytes);
    } else {
      slab->pass(bytes);
    }
  }
  if (memory == nullptr) memory = CudaMemory::get().allocate(bytes, device, stream);
  TORCH_CHECK_WITH(OutOfMemoryError, memory != nullptr, "CUDA out of memory: ", bytes,
                   " bytes on device ", device);
  report(memory, static_cast<std::int64_t>(bytes), device);
  return memory;
}

MEMPLAN_EXPORT void memplan_cuda_release(void* memory, std::size_t bytes, int device,
                                         void* stream) {
  using namespace memplan;
  if (memory == nullptr) return;
  for (const Stream other : Addresses::get().take_streams(memory)) CudaRuntime::get().wait(other);
  report(memory, -static_cast<std::int64_t>(bytes), device);
  if (Slab* const slab = Addresses::get().slab_of(memory)) {
    slab->release(memory);
  } else {
    CudaMemory::get().release(memory, bytes, device, stream);
  }
}

MEMPLAN_EXPORT void memplan_cuda_record_stream(void* memory, void* stream) {
  if (memory != nullptr) memplan::Addresses::get().add_stream(memory, stream);
}

// Moves the data of a storage (`c10::StorageImpl*`) out of its slab, for all views of it, if it
// lies in a slab and may be moved; `stream` is that of the slab. Returns 0 if there is no memory to
// move it to. Python calls this as a function of C, so no exception may leave it.
MEMPLAN_EXPORT int memplan_cuda_move_out(void* storage, void* stream) try {
  using namespace memplan;
  auto* const impl = static_cast<c10::StorageImpl*>(storage);
  // The checks are skipped, as they throw for the storages of wrappers, which have no memory.
  void* const data = impl->_mutable_data_ptr_no_checks().get();
  // A storage that only views foreign memory has no allocator, and cannot be resized either.
  if (Addresses::get().slab_of(data) == nullptr || !impl->resizable()) return 1;
  // The allocator copies on the default stream, which does not wait for other streams.
  CudaRuntime::get().wait(stream);
  c10::DataPtr ordinary = impl->allocator()->clone(impl->data(), impl->nbytes());
  CudaRuntime::get().wait(nullptr);
  impl->set_data_ptr_noswap(std::move(ordinary));
  return 1;
} catch (const std::exception&) {
  return 0;
}

MEMPLAN_EXPORT void memplan_cuda_trim() { memplan::CudaMemory::get().trim(); }
