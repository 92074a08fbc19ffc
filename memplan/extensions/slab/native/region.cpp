#include "region.h"

#include <sys/mman.h>

#include <algorithm>

namespace memplan {
namespace {

constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

std::size_t units(std::size_t bytes) { return (bytes + Region::kUnit - 1) / Region::kUnit; }

// Writes to every page, for kernels that are too old to populate all pages in one call.
void touch(char* memory, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (std::size_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 0;
}

}  // namespace

Region& Region::get() {
  static Region* const region = new Region;
  return *region;
}

Region::Region() {
  // Reserved addresses cost nothing, but a process may have a limit on them (ulimit -v), so smaller
  // sizes are tried too.
  for (std::size_t extent = std::size_t{1} << 40; extent >= kUnit << 9; extent /= 2) {
    void* const memory = mmap(nullptr, extent + kUnit, PROT_NONE, kAnonymous, -1, 0);
    if (memory == MAP_FAILED) continue;
    const std::size_t table = extent / kUnit * sizeof *owners_;
    void* const owners = mmap(nullptr, table, PROT_READ | PROT_WRITE, kAnonymous, -1, 0);
    if (owners == MAP_FAILED) {
      munmap(memory, extent + kUnit);
      continue;
    }
    const auto unit = std::uintptr_t{kUnit};
    base_ = (reinterpret_cast<std::uintptr_t>(memory) + unit - 1) / unit * unit;
    extent_ = extent;
    owners_ = static_cast<std::atomic<void*>*>(owners);
    return;
  }
}

void* Region::map(std::size_t bytes, void* owner) {
  const std::size_t count = std::max<std::size_t>(units(bytes), 1);
  const std::lock_guard<std::mutex> lock(mutex_);
  // This finds the first place with `count` free units in a row.
  std::size_t first = 0;
  for (std::size_t at = 0; at < taken_.size() && at < first + count; ++at) {
    if (taken_[at]) first = at + 1;
  }
  if (count > extent_ / kUnit || first > extent_ / kUnit - count) return nullptr;
  if (taken_.size() < first + count) taken_.resize(first + count);
  char* const memory = reinterpret_cast<char*>(base_ + first * kUnit);
  // A slab of at least one huge page gets the whole of its last one: that costs at most 2 MiB, and
  // avoids small pages at the end.
  const std::size_t length = bytes < kUnit ? bytes : count * kUnit;
  if (mprotect(memory, std::max<std::size_t>(length, 1), PROT_READ | PROT_WRITE) != 0)
    return nullptr;
  if (bytes >= kUnit) madvise(memory, length, MADV_HUGEPAGE);
  touch(memory, length);
  for (std::size_t at = first; at < first + count; ++at) {
    taken_[at] = true;
    owners_[at].store(owner, std::memory_order_relaxed);
  }
  return memory;
}

void Region::unmap(void* memory, std::size_t bytes) {
  const std::size_t count = std::max<std::size_t>(units(bytes), 1);
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) - base_) / kUnit;
  const std::lock_guard<std::mutex> lock(mutex_);
  mmap(memory, count * kUnit, PROT_NONE, kAnonymous | MAP_FIXED, -1, 0);
  for (std::size_t at = first; at < first + count; ++at) {
    taken_[at] = false;
    owners_[at].store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace memplan
