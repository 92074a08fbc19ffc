// The memory for slabs: addresses of this process, or the memory of a device.
#pragma once

#include <cstddef>

namespace memplan {

class Memory {
 public:
  // Returns memory for a slab, or nullptr if there is none. Throws if its own book-keeping fails.
  virtual void* map(std::size_t bytes, void* slab) = 0;
  // Releases memory of map().
  virtual void unmap(void* memory, std::size_t bytes) = 0;

 protected:
  ~Memory() = default;
};

}  // namespace memplan
