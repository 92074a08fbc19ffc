// First fit by the faster of two ways for the problem: short lists where they suit, else the tree.
#pragma once

#include <optional>
#include <vector>

#include "greedy/passes.h"
#include "greedy/short_lists.h"

namespace memplan {

class FirstFit {
 public:
  // All must outlive it.
  FirstFit(const Problem& problem, const Sections& sections, Stopper& stopper) {
    if (ShortLists::suits(problem, sections)) {
      lists_.emplace(problem, sections, stopper);
    } else {
      passes_.emplace(problem, sections, stopper);
    }
  }

  // The draft of Passes::in_order.
  Draft in_order(const std::vector<BufferIdx>& order, const Limits& limits) {
    return lists_ ? lists_->in_order(order, limits) : passes_->in_order(order, Fit::kFirst, limits);
  }
  // The packing of Passes::below.
  Packing below(Bytes target, const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed,
                const Limits& limits) {
    return lists_ ? lists_->below(target, order, fixed, limits)
                  : passes_->below(target, order, fixed, Fit::kFirst, limits);
  }

 private:
  std::optional<ShortLists> lists_;
  std::optional<Passes> passes_;
};

}  // namespace memplan
