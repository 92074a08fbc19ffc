// When to stop: a deadline, a number of search nodes, or the caller's word.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>

namespace memplan {

struct Budget {
  double seconds = std::numeric_limits<double>::infinity();
  std::int64_t nodes = std::numeric_limits<std::int64_t>::max();
};

// A stopper is made once per solve and checked inside every loop that can be long. `expired()`
// costs a counter on most calls, the clock on every 64th and the caller's `interrupt` every 20 ms.
// Only the thread that called solve() may call it, since the caller's `interrupt` belongs to that
// thread; other threads read `stopped()`.
class Stopper {
 public:
  using Interrupt = std::function<bool()>;

  explicit Stopper(double seconds, Interrupt interrupt = nullptr);

  bool expired() {
    if (stopped_.load(std::memory_order_relaxed)) return true;
    if (++calls_ % 64 != 0) return false;
    return look();
  }
  bool look();  // the same, without skipping the clock
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  bool interrupted() const { return interrupted_; }
  double elapsed() const;                                // seconds since the start
  double share() const { return elapsed() / seconds_; }  // of the time; 0 without a limit

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  double seconds_;
  double next_interrupt_ = 0;
  Interrupt interrupt_;
  std::uint32_t calls_ = 0;
  std::atomic<bool> stopped_{false};
  bool interrupted_ = false;
};

}  // namespace memplan
