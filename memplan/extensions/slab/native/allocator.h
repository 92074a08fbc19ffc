// PyTorch's CPU allocator while slabs are in use.
#pragma once

#include <cstdint>

#include "slab.h"

namespace memplan {

// The slab of the call that runs on this thread, or nullptr. The TLS model avoids a call into the
// loader, as every allocation of the process reads this. The loader has little room for this model,
// so other thread-local data of the library stays small, or dlopen fails.
extern thread_local Slab* current_slab __attribute__((tls_model("initial-exec")));

// Replaces the current allocator by ours; an equal number of removals restores it.
void install_allocator();
void remove_allocator();

// Whether memory is in a slab.
bool is_in_slab(const void* memory);

// While this lives, operators of this thread enter frames of the current slab if it needs them. The
// inner one of two nested objects has no effect.
class OperatorFrames {
 public:
  OperatorFrames();
  ~OperatorFrames();
  OperatorFrames(const OperatorFrames&) = delete;
  OperatorFrames& operator=(const OperatorFrames&) = delete;

 private:
  const bool is_first_;
  std::uint64_t handle_ = 0;
};

// Moves the data of a storage (`c10::StorageImpl*`, as `_cdata` of a Python storage) to ordinary
// memory, so that all its views see the new place. Returns false if the data is in no slab, or must
// keep its address.
bool move_out(void* storage);

}  // namespace memplan
