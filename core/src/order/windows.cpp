#include "order/windows.h"

#include <algorithm>

#include "order/exact.h"

namespace memplan::order {

namespace {

// Searches the operators first .. last - 1 of an order; returns whether their peak fell.
bool improve(const Program& program, std::vector<OperatorIdx>& order, Bytes lower, Bytes peak,
             std::size_t first, std::size_t last, const WindowOptions& options, Counter& counter) {
  const Part part = make_part(program, order, first, last);
  for (const bool turn : {false, true}) {
    const Program inner = turn ? turned(part.program) : part.program;
    Exact search(inner, lower, options.moves, false);
    if (search.run(peak, options.states, counter) != Exact::End::kFound) continue;
    std::vector<OperatorIdx> found = search.found();
    if (turn) std::reverse(found.begin(), found.end());
    for (std::size_t i = 0; i < found.size(); ++i) order[first + i] = part.operators[found[i]];
    return true;
  }
  return false;
}

}  // namespace

// Large neighbourhood search: the peak of an order is one step, and often some operators around it
// are all that stands in a bad order. So a stretch of the order around that step becomes a program
// of its own, with all before it done and all after it still to come, and the exact search looks
// for an order of it with a lower peak. Steps outside of the stretch depend on sets that do not
// change, so they stay as they are. Each turn lowers the step that is the peak or ends the loop;
// `order` is legal all the time, and its peak never rises.
void improve_windows(const Program& program, std::vector<OperatorIdx>& order, Bytes lower,
                     const WindowOptions& options, Counter& counter) {
  while (!counter.is_spent()) {
    const std::vector<Bytes> steps = steps_of(program, order);
    const auto highest = std::max_element(steps.begin(), steps.end());
    if (highest == steps.end() || *highest <= lower) return;
    const auto place = static_cast<std::size_t>(highest - steps.begin());
    // The peak is in the middle of the window, near its end, or near its beginning.
    bool fell = false;
    for (const std::size_t before : {options.width / 2, options.width, options.width / 8}) {
      if (fell) break;
      const std::size_t first = place - std::min(place, before);
      const std::size_t last = std::min(first + options.width + options.width / 8, order.size());
      fell = improve(program, order, lower, *highest, first, last, options, counter);
    }
    if (!fell) return;
  }
}

}  // namespace memplan::order
