#include "large/core_placer.h"

#include <algorithm>
#include <utility>

#include "memplan/sections.h"
#include "util/invariants.h"

namespace memplan::chain {

PartPacker::PartPacker(const Part& part, Stopper& stopper)
    : part_(part),
      stopper_(stopper),
      sections_(sweep(part.problem)),
      passes_(part.problem, sections_, stopper) {}

Packing PartPacker::pack(const std::vector<Bytes>& fixed, Bytes goal, const Patience& patience,
                         Ranking* ranking) {
  std::vector<Bytes> fixed_rows;
  if (!fixed.empty()) {
    for (const BufferIdx b : part_.rows) fixed_rows.push_back(fixed[b]);
  }
  Packing best;
  std::int64_t nodes = 0;
  std::int64_t steps = 0;
  for (int k = 0; k < patience.passes && (k == 0 || steps < patience.steps) && !stopper_.look();
       ++k) {
    const Limits limits{goal, INT64_MAX, patience.nodes - nodes};
    Packing packing = passes_.below(goal, ranked_rows(*ranking), fixed_rows, Fit::kFirst, limits);
    nodes += packing.nodes;
    steps += packing.steps;
    if (!packing.ended) break;
    for (BufferIdx& b : packing.rejected) b = part_.rows[b];
    if (k == 0 || packing.rejected.size() < best.rejected.size()) best = packing;
    if (packing.rejected.empty()) break;
    ranking->promote(packing.rejected);
  }
  best.nodes = nodes;
  best.steps = steps;
  return best;
}

// Sorts the rows by the ranking, which has the buffers of the whole problem.
std::vector<BufferIdx> PartPacker::ranked_rows(const Ranking& ranking) {
  const std::vector<BufferIdx>& rows = part_.rows;
  std::vector<BufferIdx> order = ranking.sorted(rows, stopper_);
  for (BufferIdx& b : order) {
    MEMPLAN_ASSERT(std::binary_search(rows.begin(), rows.end(), b));
    b = static_cast<BufferIdx>(std::lower_bound(rows.begin(), rows.end(), b) - rows.begin());
  }
  return order;
}

PlacedCore place_core(const Part& part, Bytes goal, const Patience& patience, const Effort& search,
                      std::uint64_t seed, Ranking* ranking, Stopper& stopper) {
  PlacedCore placed;
  Packing packing = PartPacker(part, stopper).pack({}, goal, patience, ranking);
  placed.nodes = packing.nodes;
  placed.offsets = std::move(packing.offsets);
  placed.offsets.resize(part.rows.size(), kNoOffset);
  placed.whole = packing.ended && packing.rejected.empty();
  if (placed.whole) return placed;
  const Effort left{search.visits, search.nodes - placed.nodes};
  Plan plan = fit_part(part, goal, left, seed, stopper);
  placed.nodes += plan.stats.nodes;
  placed.refuted = plan.status == Status::kInfeasible;
  if (!plan.has_offsets()) return placed;
  MEMPLAN_ASSERT(plan.peak <= goal && plan.offsets.size() == part.rows.size());
  placed.offsets = std::move(plan.offsets);
  placed.whole = true;
  return placed;
}

}  // namespace memplan::chain
