// Hints to the processor that some memory will be read soon.
#pragma once

namespace memplan {

inline void fetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
  __builtin_prefetch(address);
  __asm__ volatile("");  // else GCC drops a function that does nothing more
#endif
}

}  // namespace memplan
