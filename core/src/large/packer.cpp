#include "large/packer.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan::chain {

Packer::Packer(const Problem& problem, const Sections& sections, Stopper& stopper)
    : problem_(problem), stopper_(stopper), occupancy_(problem, sections) {}

bool Packer::in_budget(const Goal& goal, const Packing& packing) {
  const std::int64_t steps = occupancy_.steps() - steps_before_;
  return packing.nodes < goal.nodes && steps < goal.steps && !stopper_.expired();
}

void Packer::put(BufferIdx b, Bytes offset, Packing* packing) {
  occupancy_.place(b, offset);
  occupancy_.blocks().for_each(b, [&](BufferIdx member, Bytes shift) {
    MEMPLAN_ASSERT(packing->offsets[member] == kNoOffset);  // none is moved again
    packing->offsets[member] = offset + shift;
    packing->peak = std::max(packing->peak, offset + shift + problem_.size[member]);
    ++packing->nodes;
  });
  packing->steps = occupancy_.steps() - steps_before_;
}

Packing Packer::pack(const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed, Fit fit,
                     const Goal& goal) {
  Packing packing;
  occupancy_.clear();
  steps_before_ = occupancy_.steps();
  packing.offsets.assign(problem_.size.size(), kNoOffset);
  for (const std::vector<Bytes>* places : {&problem_.pin, &fixed}) {
    for (std::size_t i = 0; i < places->size(); ++i) {
      const auto b = static_cast<BufferIdx>(i);
      const Bytes offset = (*places)[i];
      if (offset == kNoOffset || packing.offsets[b] != kNoOffset) continue;
      if (!occupancy_.admits(b, offset, goal.limit) || !in_budget(goal, packing)) return packing;
      put(b, offset, &packing);
    }
  }
  const Bytes target = std::min(goal.target, goal.limit);
  std::vector<BufferIdx> firsts;
  if (blocks().any()) firsts = blocks().firsts(order);
  for (const BufferIdx b : blocks().any() ? firsts : order) {
    if (packing.offsets[b] != kNoOffset) continue;
    if (!in_budget(goal, packing)) return packing;
    const Bytes offset =
        fit == Fit::kFirst ? occupancy_.first_fit(b, 0, target) : occupancy_.best_fit(b, target);
    if (offset == kNoOffset) {
      packing.rejected.push_back(b);
    } else {
      put(b, offset, &packing);
    }
  }
  MEMPLAN_ASSERT(occupancy_.check_invariants());
  packing.ended = true;
  for (const BufferIdx b : packing.rejected) {
    if (!in_budget(goal, packing)) return packing;
    const Bytes offset = occupancy_.first_fit(b, 0, goal.limit);
    if (offset == kNoOffset) return packing;
    put(b, offset, &packing);
  }
  MEMPLAN_ASSERT(packing.nodes == problem_.count() && packing.peak <= goal.limit);
  packing.complete = true;
  return packing;
}

void bump(const std::vector<BufferIdx>& rejected, std::vector<BufferIdx>* order) {
  std::vector<char> is_rejected(order->size(), 0);
  for (const BufferIdx b : rejected) is_rejected[b] = 1;
  std::stable_partition(order->begin(), order->end(),
                        [&](BufferIdx b) { return is_rejected[b] != 0; });
  MEMPLAN_ASSERT(std::is_permutation(rejected.begin(), rejected.end(), order->begin()));
  std::copy(rejected.begin(), rejected.end(), order->begin());
}

}  // namespace memplan::chain
