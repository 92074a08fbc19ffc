#include "order/tidy.h"

#include <algorithm>

#include "order/state.h"

namespace memplan::order {

namespace {

// The operators that lie outside of a longest ascending part of the order.
std::size_t count_moved(const std::vector<OperatorIdx>& order) {
  std::vector<OperatorIdx> tails;
  for (const OperatorIdx op : order) {
    const auto at = std::lower_bound(tails.begin(), tails.end(), op);
    if (at == tails.end()) {
      tails.push_back(op);
    } else {
      *at = op;
    }
  }
  return order.size() - tails.size();
}

// Runs what is next in the given order wherever the peak allows that all of `order` follows.
std::vector<OperatorIdx> pull_forward(const Program& program, const std::vector<OperatorIdx>& order,
                                      Bytes peak) {
  std::vector<OperatorIdx> rest = order;
  std::size_t moved = count_moved(order);
  for (OperatorIdx op = 0; op < program.operators() && moved > 0; ++op) {
    // Each operator is tried directly before its given follower in the present order.
    const auto here = std::find(rest.begin(), rest.end(), op);
    auto there = std::find_if(rest.begin(), here, [op](OperatorIdx other) { return other > op; });
    if (there == here) continue;
    std::vector<OperatorIdx> changed = rest;
    const auto from = changed.begin() + (here - rest.begin());
    const auto to = changed.begin() + (there - rest.begin());
    std::rotate(to, from, from + 1);
    const auto before = program.before[op];
    const bool is_legal = std::none_of(to + 1, from + 1, [&](OperatorIdx other) {
      return std::find(before.begin(), before.end(), other) != before.end();
    });
    if (!is_legal) continue;
    const std::vector<Bytes> steps = steps_of(program, changed);
    const std::size_t now_moved = count_moved(changed);
    if (now_moved <= moved && *std::max_element(steps.begin(), steps.end()) <= peak) {
      rest = std::move(changed);
      moved = now_moved;
    }
  }
  return rest;
}

}  // namespace

// The order is legal and no step is above `peak`, before and after each exchange. A round is one
// pass of bubble sort, which exchanges neighbours that stand against their given order: the number
// of such pairs falls with each exchange, so the rounds end. What a pair of neighbours cannot do,
// pull_forward() does with one operator and a longer way.
std::vector<OperatorIdx> tidy(const Program& program, std::vector<OperatorIdx> order, Bytes peak) {
  // Neighbours are exchanged first: only their two steps change.
  State state(program);
  bool changed = true;
  constexpr int kMaxRounds = 50;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    state.rewind(0);
    for (std::size_t at = 0; at + 1 < order.size(); ++at) {
      const OperatorIdx first = order[at];
      const OperatorIdx second = order[at + 1];
      if (first > second && state.is_ready(second) && state.step(second) <= peak) {
        state.run(second);
        const bool fits = state.step(first) <= peak;
        if (fits) {
          std::swap(order[at], order[at + 1]);
          changed = true;
          continue;
        }
        state.rewind(at);
      }
      state.run(first);
    }
  }
  constexpr std::size_t kFewOperators = 2000;
  return order.size() <= kFewOperators ? pull_forward(program, order, peak) : order;
}

}  // namespace memplan::order
