// The bounds from conflicts that no common time explains and from groups. They have a file of their
// own, so that a solver that handles neither is linked without it.
#include <algorithm>
#include <map>
#include <utility>

#include "bounds/heavy_clique.h"
#include "memplan/bounds.h"

namespace memplan {

namespace {

// Buffers that all conflict, at different times or as listed, share no address.
Bound by_conflicts(const Problem& problem, const Sections& sections) {
  std::vector<BufferIdx> clique = heavy_clique(problem, sections);
  const Bytes bytes = sum_of_sizes(problem, clique);
  return {bytes, -1, "conflicts", std::move(clique)};
}

// A group reaches from its first member to its last, whatever lies between them.
Bound by_one_group(const Problem& problem) {
  struct Reach {
    Bytes lower;  // in leads
    Bytes upper;
    std::vector<BufferIdx> members;
  };
  std::map<std::int32_t, Reach> groups;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.group_of(b) == kNoGroup) continue;
    const Bytes lead = problem.lead[b];
    // This is written so that the sum cannot exceed 2^63.
    const Bytes end = std::min(lead, kMaxBytes + 1 - problem.size[b]) + problem.size[b];
    Reach& reach = groups.emplace(problem.group[b], Reach{lead, end, {}}).first->second;
    reach.lower = std::min(reach.lower, lead);
    reach.upper = std::max(reach.upper, end);
    reach.members.push_back(b);
  }
  Bound bound{0, -1, "group"};
  for (auto& [group, reach] : groups) {
    if (reach.upper - reach.lower <= bound.bytes) continue;
    bound.bytes = reach.upper - reach.lower;
    bound.buffers = std::move(reach.members);
  }
  return bound;
}

}  // namespace

Bound lower_bound(const Problem& problem, const Sections& sections) {
  Bound best = bound_of_lifetimes(problem, sections);
  if (!needs_cliques(problem, sections) && problem.group.empty()) return best;
  const auto consider = [&best](const Bound& bound) {
    if (bound.bytes > best.bytes) best = bound;
  };
  if (needs_cliques(problem, sections)) consider(by_conflicts(problem, sections));
  if (!problem.group.empty()) consider(by_one_group(problem));
  if (!limits_offsets(problem)) return best;
  const Bytes reachable = next_reachable_peak(problem, sections, best.bytes);
  if (reachable > best.bytes) best = {reachable, best.section, "sums of sizes"};
  return best;
}

}  // namespace memplan
