// Where slabs lie: addresses of this process, or the memory of a device.
#pragma once

#include <cstddef>

namespace memplan {

class Memory {
 public:
  // Memory for a slab, or nullptr if there is none. Without memory for its own books it throws.
  virtual void* map(std::size_t bytes, void* slab) = 0;
  // Gives back what map() gave.
  virtual void unmap(void* memory, std::size_t bytes) = 0;

 protected:
  ~Memory() = default;
};

}  // namespace memplan
