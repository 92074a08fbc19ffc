// The addresses of all slabs, reserved once, so that one look-up finds the owner of an address.
//
//     base                                                        base + extent
//     |unit 0 |unit 1 |unit 2 |unit 3 |  ...  PROT_NONE           |
//     | slab A        | slab B|                                   owners: A A B - - ...
//
// Frameworks release memory by its address alone, on any thread, so the look-up must take no lock.
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

  // The one object of the process. It is made on first use and never destroyed, since tensors may
  // outlive all other objects.
  static Region& get();

  // Returns memory for `bytes`, aligned to a huge page, or nullptr if there is none. All pages are
  // touched, so that a call has no page faults.
  void* map(std::size_t bytes, void* owner) override;
  // Releases memory of map(); its addresses can be used again.
  void unmap(void* memory, std::size_t bytes) override;

  // Returns the owner of an address, or nullptr if it is not in this region.
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
  std::vector<bool> taken_;  // by unit, up to the last one that was ever taken
};

}  // namespace memplan
