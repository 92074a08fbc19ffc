#include "greedy/passes.h"

#include <algorithm>
#include <cstddef>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

Passes::Passes(const Problem& problem, const Sections& sections, Stopper& stopper)
    : problem_(problem), sections_(sections), stopper_(stopper), occupancy_(problem, sections) {}

bool Passes::place_pinned(const Limits& limits, Draft* draft) {
  occupancy_.clear();
  steps_before_ = occupancy_.steps();
  draft->offsets.assign(problem_.size.size(), kNoOffset);
  if (problem_.pin.empty()) return true;
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    const Bytes pin = problem_.pin[b];
    if (pin == kNoOffset || draft->offsets[b] != kNoOffset) continue;
    if (!occupancy_.admits(b, pin, limits.bytes) || !in_budget(limits, *draft)) return false;
    put(b, pin, draft);
    MEMPLAN_ASSERT(draft->peak <= limits.bytes);
  }
  return true;
}

bool Passes::in_budget(const Limits& limits, std::int64_t nodes, std::int64_t steps) {
  return nodes < limits.nodes && steps < limits.steps && !stopper_.expired();
}

void Passes::put(BufferIdx b, Bytes offset, Draft* draft) {
  occupancy_.place(b, offset);
  note(b, offset, draft);
}

void Passes::note(BufferIdx b, Bytes offset, Draft* draft) {
  occupancy_.blocks().for_each(b, [&](BufferIdx member, Bytes shift) {
    MEMPLAN_ASSERT(draft->offsets[member] == kNoOffset);  // none is moved again
    draft->offsets[member] = offset + shift;
    draft->peak = std::max(draft->peak, offset + shift + problem_.size[member]);
    ++draft->nodes;
  });
}

void Passes::fill(const std::vector<BufferIdx>& order, Fit fit, const Limits& limits,
                  Draft* draft) {
  for (const BufferIdx b : order) {
    if (draft->offsets[b] != kNoOffset) continue;
    if (!in_budget(limits, *draft)) return;
    const Bytes offset = fit == Fit::kFirst ? occupancy_.first_fit(b, 0, limits.bytes)
                                            : occupancy_.best_fit(b, limits.bytes);
    if (offset == kNoOffset) {
      draft->stuck = b;
      return;
    }
    put(b, offset, draft);
    draft->steps = steps();
  }
  MEMPLAN_ASSERT(std::count(draft->offsets.begin(), draft->offsets.end(), kNoOffset) == 0);
  MEMPLAN_ASSERT(draft->nodes == problem_.count() && draft->peak <= limits.bytes);
  MEMPLAN_ASSERT(occupancy_.check_invariants());
  draft->complete = true;
}

Draft Passes::in_order(const std::vector<BufferIdx>& order, Fit fit, const Limits& limits) {
  Draft draft;
  if (place_pinned(limits, &draft)) fill(order, fit, limits, &draft);
  return draft;
}

Draft Passes::at_hints(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  if (!place_pinned(limits, &draft)) return draft;
  std::vector<Ranked> hinted;  // rows of the order
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Bytes hint = problem_.hint_of(order[i]);
    // A buffer of size 0 is free to stay at the bottom, where it cannot raise the peak.
    if (hint == kNoOffset || problem_.size[order[i]] == 0) continue;
    hinted.push_back({hint, static_cast<std::int32_t>(i)});
  }
  sort_ranked(hinted.data(), hinted.data() + hinted.size());
  for (const auto& [hint, row] : hinted) {
    const BufferIdx b = order[row];
    if (draft.offsets[b] != kNoOffset) continue;
    if (!in_budget(limits, draft)) return draft;
    if (occupancy_.first_fit(b, hint, limits.bytes) != hint) continue;
    put(b, hint, &draft);
    draft.steps = steps();
  }
  fill(order, Fit::kFirst, limits, &draft);
  return draft;
}

// Attempts that find no place are work as well, but `steps` of the packing counts only up to its
// last placement.
Packing Passes::below(Bytes target, const std::vector<BufferIdx>& order,
                      const std::vector<Bytes>& fixed, Fit fit, const Limits& limits) {
  Packing packing;
  if (!place_pinned(limits, &packing)) return packing;
  packing.steps = steps();
  const auto may_go_on = [&] { return in_budget(limits, packing.nodes, steps()); };
  const auto settle = [&](BufferIdx b, Bytes offset) {
    put(b, offset, &packing);
    packing.steps = steps();
  };
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    const auto b = static_cast<BufferIdx>(i);
    if (fixed[i] == kNoOffset || packing.offsets[b] != kNoOffset) continue;
    if (!occupancy_.admits(b, fixed[i], limits.bytes) || !may_go_on()) return packing;
    settle(b, fixed[i]);
  }
  std::vector<BufferIdx> firsts;
  if (blocks().any()) firsts = blocks().firsts(order);
  place_or_reject(blocks().any() ? firsts : order, target, limits.bytes, &packing,
                  [&](BufferIdx b, Bytes bytes, bool again) {
                    if (!may_go_on()) return Attempt::kStopped;
                    const Bytes offset = fit == Fit::kFirst || again
                                             ? occupancy_.first_fit(b, 0, bytes)
                                             : occupancy_.best_fit(b, bytes);
                    if (offset == kNoOffset) return Attempt::kRejected;
                    settle(b, offset);
                    return Attempt::kPlaced;
                  });
  MEMPLAN_ASSERT(occupancy_.check_invariants());
  MEMPLAN_ASSERT(!packing.complete ||
                 (packing.nodes == problem_.count() && packing.peak <= limits.bytes));
  return packing;
}

}  // namespace memplan
