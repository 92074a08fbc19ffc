// What may end the work of the prover before its slice does.
#pragma once

#include <atomic>

#include "memplan/budget.h"

namespace memplan::prover {

// Where the prover runs on the thread of the call it reads the call's stopper, and otherwise a flag
// that the call's thread sets. Either may be null.
struct Halt {
  Stopper* stopper = nullptr;
  const std::atomic<bool>* cancel = nullptr;

  // Like those of Stopper: the first is for short steps.
  bool expired() const { return is_cancelled() || (stopper != nullptr && stopper->expired()); }
  bool look() const { return is_cancelled() || (stopper != nullptr && stopper->look()); }

 private:
  bool is_cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }
};

}  // namespace memplan::prover
