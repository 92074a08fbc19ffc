#include "large/part.h"

#include <algorithm>
#include <utility>

#include "memplan/exact.h"
#include "memplan/sections.h"
#include "util/invariants.h"

namespace memplan::chain {

namespace {

// Gaps and windows need the search over relations, which lists all pairs, so that they must be few.
constexpr BufferIdx kMostWithGaps = 60;
constexpr std::int64_t kNodesWithGaps = 50;  // each looks at all pairs

// A descent that meets little resistance ends within two nodes for each buffer.
constexpr std::int64_t kNodesPerBuffer = 3;
constexpr std::int64_t kNodesBeyond = 1000;

// The search of a core takes one part of so many of the nodes, so that a failure leaves enough.
constexpr std::int64_t kSearchShare = 4;

template <typename T>
void copy_rows(const std::vector<T>& from, const std::vector<BufferIdx>& rows, std::vector<T>* to) {
  if (from.empty()) return;
  to->reserve(rows.size());
  for (const BufferIdx b : rows) to->push_back(from[b]);
}

void copy_gaps(const Problem& from, const std::vector<BufferIdx>& rows, Problem* to) {
  if (from.gaps.empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto gap = std::lower_bound(from.gaps.begin(), from.gaps.end(), rows[i],
                                [](const Gap& g, BufferIdx b) { return g.buffer < b; });
    for (; gap != from.gaps.end() && gap->buffer == rows[i]; ++gap) {
      to->gaps.push_back(*gap);
      to->gaps.back().buffer = static_cast<BufferIdx>(i);
    }
  }
}

// The work of a node of the search: a visit to every section of every buffer, and what it does
// for a buffer of any length.
std::int64_t node_cost(const Sections& sections) {
  constexpr std::int64_t kPerBuffer = 256;
  std::int64_t cost = 1 + kPerBuffer * static_cast<std::int64_t>(sections.spans.size());
  for (const Span& span : sections.spans) cost += 1 + span.last - span.first;
  return cost;
}

}  // namespace

Part take_part(const Problem& problem, std::vector<BufferIdx> rows) {
  Part part;
  MEMPLAN_ASSERT(std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) ==
                 rows.end());
  copy_rows(problem.start, rows, &part.problem.start);
  copy_rows(problem.end, rows, &part.problem.end);
  copy_rows(problem.size, rows, &part.problem.size);
  copy_rows(problem.alignment, rows, &part.problem.alignment);
  copy_rows(problem.pin, rows, &part.problem.pin);
  copy_gaps(problem, rows, &part.problem);
  part.problem.reserved = problem.reserved;
  part.rows = std::move(rows);
  return part;
}

std::int64_t nodes_of_descent(const Part& part) {
  return kNodesBeyond + kNodesPerBuffer * part.problem.count();
}

Plan fit_part(const Part& part, Bytes capacity, const Effort& effort, std::uint64_t seed,
              Stopper& stopper) {
  const std::int64_t n = part.problem.count();
  const Sections sections = sweep(part.problem);
  if (!sections.single_span && n > kMostWithGaps) return {};
  // Without a node for every buffer, not even the first descent can end.
  std::int64_t nodes = std::min(effort.nodes, effort.visits / node_cost(sections));
  if (nodes < n) return {};
  if (!sections.single_span) nodes = std::min(nodes, kNodesWithGaps);
  return exact_fit(part.problem, sections, capacity, {}, nodes, 1, seed, stopper);
}

PartPacker::PartPacker(const Part& part, Stopper& stopper)
    : part_(part),
      stopper_(stopper),
      sections_(sweep(part.problem)),
      first_fit_(part.problem, sections_, stopper) {}

// Promotion: a pass ranks what the one before rejected as if it had half the room, and so places it
// earlier, but not before all others. A few passes settle it, or none does.
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
    Packing packing = first_fit_.below(goal, ranked_rows(*ranking), fixed_rows, limits);
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

// No plan of the whole reaches the goal while the core has none, so its search is worth much. With
// pins, reserved ranges or alignments, the search knows fewer rules, and a second descent seldom
// finds what the first did not.
PlacedCore place_core(const Part& part, Bytes goal, const Patience& patience, const Effort& search,
                      std::uint64_t seed, Ranking* ranking, Stopper& stopper) {
  PlacedCore placed;
  Packing packing = PartPacker(part, stopper).pack({}, goal, patience, ranking);
  placed.nodes = packing.nodes;
  placed.offsets = std::move(packing.offsets);
  placed.offsets.resize(part.rows.size(), kNoOffset);
  placed.whole = packing.ended && packing.rejected.empty();
  if (placed.whole) return placed;
  Effort left{search.visits, search.nodes - placed.nodes};
  left.nodes = limits_places(part.problem) ? std::min(left.nodes, nodes_of_descent(part))
                                           : left.nodes / kSearchShare;
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
