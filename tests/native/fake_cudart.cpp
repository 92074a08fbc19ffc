// A CUDA runtime without a device: "device" memory is that of the process. Counts what is asked of
// it, so that tests can see what the slab does; a limit makes it run out of memory.
#include <cstddef>
#include <cstdlib>
#include <map>
#include <utility>

namespace {

std::map<void*, std::size_t> blocks;
std::size_t used = 0;
std::size_t limit = static_cast<std::size_t>(-1);
int device = 0;
long mallocs = 0;
void* next = nullptr;  // to be given out by the next cudaMalloc; not ours to free
long waits = 0;
int pending_error = 0;

}  // namespace

extern "C" {

int cudaMalloc(void** memory, std::size_t bytes) {
  ++mallocs;
  if (next != nullptr) {
    *memory = std::exchange(next, nullptr);
    return 0;
  }
  if (bytes > limit - used) return pending_error = 2;
  *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  blocks[*memory] = bytes;
  used += bytes;
  return 0;
}

int cudaFree(void* memory) {
  const auto found = blocks.find(memory);
  if (found == blocks.end()) std::abort();
  used -= found->second;
  blocks.erase(found);
  std::free(memory);
  return 0;
}

int cudaGetDevice(int* current) {
  *current = device;
  return 0;
}

int cudaSetDevice(int next) {
  device = next;
  return 0;
}

int cudaStreamSynchronize(void*) {
  ++waits;
  return 0;
}

int cudaGetLastError() {
  const int error = pending_error;
  pending_error = 0;
  return error;
}

void fake_next(void* memory) { next = memory; }
void fake_limit(std::size_t bytes) { limit = bytes; }
std::size_t fake_used() { return used; }
long fake_mallocs() { return mallocs; }
long fake_waits() { return waits; }
int fake_pending_error() { return pending_error; }

}  // extern "C"
