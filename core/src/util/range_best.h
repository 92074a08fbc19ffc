// The best value over any range of a sequence: a tree of the best of pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "util/invariants.h"

namespace memplan {

// `Better` as std::less for the least value, as std::greater for the greatest.
template <typename Value, typename Better>
class RangeBest {
 public:
  explicit RangeBest(const std::vector<Value>& values)
      : leaves_(values.size()), node_(2 * values.size()) {
    std::copy(values.begin(), values.end(), node_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t k = leaves_; k-- > 1;) node_[k] = better(node_[2 * k], node_[2 * k + 1]);
  }

  // The best of values[first] to values[last], both included.
  Value over(std::size_t first, std::size_t last) const {
    MEMPLAN_ASSERT(first <= last && last < leaves_);
    std::size_t left = leaves_ + first;
    std::size_t right = leaves_ + last + 1;
    Value best = node_[left];
    for (; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) best = better(best, node_[left++]);
      if (right % 2 == 1) best = better(best, node_[--right]);
    }
    return best;
  }

 private:
  static Value better(Value a, Value b) { return Better()(b, a) ? b : a; }

  std::size_t leaves_;
  std::vector<Value> node_;
};

}  // namespace memplan
