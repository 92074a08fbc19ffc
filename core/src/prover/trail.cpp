#include "prover/trail.h"

#include <algorithm>
#include <limits>

namespace memplan::prover {

// Every half begins with an entry of its own, so that walks back along a half end by themselves.
Trail::Trail(const Model& model, const Halt& halt) : model_(model) {
  relation_.assign(static_cast<std::size_t>(model.items) * model.items, kApart);
  for (int i = 0; i < model.items; ++i) {
    bound_.push_back(model.floor[i]);
    bound_.push_back(-(model.latest(i, model.world->capacity) + model.size[i]));
  }
  bound_.resize(model.halves(), 0);
  fact_ = bound_;
  last_.resize(bound_.size());
  entries_.reserve(bound_.size());
  for (Half h = 0; h < model.halves(); ++h) {
    if (halt.expired()) throw Halted();
    last_[h] = h;
    entries_.push_back({bound_[h], h, -1, 0, {}});
    if (!model.is_item(h)) relate(h, kOpen, kOpen);
  }
}

void Trail::measure() {
  Bytes first = std::numeric_limits<Bytes>::max(), last = 0;
  for (int i = 0; i < model_.items; ++i) {
    first = std::min(first, fact_[2 * i]);
    last = std::max(last, -fact_[2 * i + 1]);
  }
  room_ = last - first;
}

}  // namespace memplan::prover
