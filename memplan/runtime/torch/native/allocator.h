// PyTorch's CPU allocator while slabs are in use.
#pragma once

#include <cstdint>

#include "slab.h"

namespace memplan {

// The call that is under way on this thread, or nullptr. Found without a call into the loader:
// every allocation of the process asks for it.
extern thread_local Slab* current_slab __attribute__((tls_model("initial-exec")));

// Puts our allocator in the place of the one that is there; as many removals put that one back.
void install_allocator();
void remove_allocator();

// Whether memory is in a slab.
bool is_in_slab(const void* memory);

// While this lives, operators of this thread enter frames of the current slab if it wants them. Of
// two that are nested the inner one does nothing.
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

// Moves what a storage holds (`c10::StorageImpl*`, as `_cdata` of a Python storage) to ordinary
// memory, under all the tensors that view it. Returns whether it did: not if it is in no slab, or
// must stay where it is.
bool move_out(void* storage);

}  // namespace memplan
