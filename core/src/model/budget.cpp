#include "memplan/budget.h"

#include <utility>

namespace memplan {

namespace {
constexpr double kInterruptEvery = 0.02;  // seconds; well inside the 100 ms that Ctrl-C is given
}

Stopper::Stopper(double seconds, Interrupt interrupt)
    : begin_(Clock::now()), seconds_(seconds), interrupt_(std::move(interrupt)) {}

double Stopper::elapsed() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

bool Stopper::look() {
  const double now = elapsed();
  if (interrupt_ && now >= next_interrupt_) {
    next_interrupt_ = now + kInterruptEvery;
    interrupted_ = interrupt_();
  }
  if (interrupted_ || now >= seconds_) stopped_.store(true, std::memory_order_relaxed);
  return stopped();
}

}  // namespace memplan
