// Who may end the work of the prover before its slice does.
#pragma once

#include <atomic>

#include "memplan/budget.h"

namespace memplan::prover {

// Thrown while a model is made: half of one is of no use.
struct Halted {};

// The stopper of the call, where the prover runs on its thread, or else the word of that thread.
// Either may be null.
struct Halt {
  Stopper* stopper = nullptr;
  const std::atomic<bool>* cancel = nullptr;

  // As those of Stopper: the first is for short steps.
  bool expired() const { return is_cancelled() || (stopper != nullptr && stopper->expired()); }
  bool look() const { return is_cancelled() || (stopper != nullptr && stopper->look()); }

 private:
  bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

}  // namespace memplan::prover
