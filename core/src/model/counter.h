// What several searches may use together.
#pragma once

#include <cstdint>

#include "memplan/budget.h"

namespace memplan {

class Counter {
 public:
  Counter(std::int64_t states, Stopper& stopper) : left_(states), stopper_(stopper) {}

  // Takes states, by default one; returns whether the search must end.
  bool take(std::int64_t states = 1) {
    used_ += states;
    left_ -= states;
    return left_ < 0 || stopper_.expired();
  }
  bool is_spent() { return left_ <= 0 || stopper_.expired(); }
  // The same for loops with long rounds: it looks at the clock each time.
  bool is_over() { return left_ <= 0 || stopper_.look(); }
  std::int64_t used() const { return used_; }
  std::int64_t left() const { return left_; }
  Stopper& stopper() { return stopper_; }

 private:
  std::int64_t left_;
  std::int64_t used_ = 0;
  Stopper& stopper_;
};

}  // namespace memplan
