// The addresses of all slabs, reserved once, so that the owner of an address is one look-up away.
//
//     base                                                        base + extent
//     |unit 0 |unit 1 |unit 2 |unit 3 |  ...  PROT_NONE           |
//     | slab A        | slab B|                                   owners: A A B - - ...
//
// Frameworks give back memory by its address alone, on any thread: this must not take a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "memory.h"

namespace memplan {

class Region final : public Memory {
 public:
  static constexpr std::size_t kUnit = std::size_t{1} << 21;  // one huge page on x86-64 and Arm

  // Of the process; made on first use, and never unmade, since tensors may outlive everything.
  static Region& get();

  // Memory for `bytes`, touched already so that no page fault is left for later, and aligned to a
  // huge page; nullptr if there is none.
  void* map(std::size_t bytes, void* owner) override;
  // Gives back what map() gave; the addresses can serve again.
  void unmap(void* memory, std::size_t bytes) override;

  // Whose an address is; nullptr for memory that is not of this region.
  void* owner(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address) - base_;
    return at < extent_ ? owners_[at / kUnit].load(std::memory_order_relaxed) : nullptr;
  }

 private:
  Region();

  std::uintptr_t base_ = 0;
  std::size_t extent_ = 0;
  std::atomic<void*>* owners_ = nullptr;
  std::mutex mutex_;
  std::vector<bool> taken_;  // by unit, as far as any was ever taken
};

}  // namespace memplan
