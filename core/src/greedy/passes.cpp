#include "greedy/passes.h"

#include <algorithm>

namespace memplan {

Passes::Passes(const Problem& problem, const Sections& sections, Stopper& stopper)
    : problem_(problem), sections_(sections), stopper_(stopper), occupancy_(problem, sections) {}

bool Passes::begin(const Limits& limits, Draft* draft) {
  occupancy_.clear();
  steps_before_ = occupancy_.steps();
  draft->offsets.assign(problem_.size.size(), kNoOffset);
  if (problem_.pin.empty()) return true;
  for (BufferIdx b = 0; b < problem_.count(); ++b) {
    const Bytes pin = problem_.pin[b];
    if (pin == kNoOffset) continue;
    if (pin + problem_.size[b] > limits.bytes || !in_budget(limits, *draft)) return false;
    occupancy_.place(b, pin);
    put(b, pin, draft);
  }
  return true;
}

bool Passes::in_budget(const Limits& limits, const Draft& draft) {
  return draft.nodes < limits.nodes && draft.steps < limits.steps && !stopper_.expired();
}

void Passes::put(BufferIdx b, Bytes offset, Draft* draft) {
  draft->offsets[b] = offset;
  draft->peak = std::max(draft->peak, offset + problem_.size[b]);
  ++draft->nodes;
}

void Passes::fill(const std::vector<BufferIdx>& order, Fit fit, const Limits& limits,
                  Draft* draft) {
  for (const BufferIdx b : order) {
    if (draft->offsets[b] != kNoOffset) continue;
    if (!in_budget(limits, *draft)) return;
    const Bytes offset = fit == Fit::kFirst ? occupancy_.first_fit(b, 0, limits.bytes)
                                            : occupancy_.best_fit(b, limits.bytes);
    if (offset == kNoOffset) return;
    occupancy_.place(b, offset);
    put(b, offset, draft);
    draft->steps = occupancy_.steps() - steps_before_;
  }
  draft->complete = true;
}

Draft Passes::in_order(const std::vector<BufferIdx>& order, Fit fit, const Limits& limits) {
  Draft draft;
  if (begin(limits, &draft)) fill(order, fit, limits, &draft);
  return draft;
}

Draft Passes::at_hints(const std::vector<BufferIdx>& order, const Limits& limits) {
  Draft draft;
  if (!begin(limits, &draft)) return draft;
  std::vector<BufferIdx> hinted;
  for (const BufferIdx b : order) {
    // A buffer of size 0 is free to stay at the bottom, where it cannot raise the peak.
    if (problem_.hint_of(b) != kNoOffset && problem_.size[b] > 0) hinted.push_back(b);
  }
  std::stable_sort(hinted.begin(), hinted.end(), [this](BufferIdx a, BufferIdx b) {
    return problem_.hint_of(a) < problem_.hint_of(b);
  });
  for (const BufferIdx b : hinted) {
    if (draft.offsets[b] != kNoOffset) continue;
    if (!in_budget(limits, draft)) return draft;
    const Bytes hint = problem_.hint_of(b);
    if (occupancy_.first_fit(b, hint, limits.bytes) != hint) continue;
    occupancy_.place(b, hint);
    put(b, hint, &draft);
    draft.steps = occupancy_.steps() - steps_before_;
  }
  fill(order, Fit::kFirst, limits, &draft);
  return draft;
}

}  // namespace memplan
