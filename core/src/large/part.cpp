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

// A descent that meets little resistance ends within two nodes for each buffer. Where it takes
// many more, another part is a better use of the time.
constexpr std::int64_t kNodesPerBuffer = 3;
constexpr std::int64_t kNodesBeyond = 1000;

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

Plan fit_part(const Part& part, Bytes capacity, const Effort& effort, std::uint64_t seed,
              Stopper& stopper) {
  const std::int64_t n = part.problem.count();
  const Sections sections = sweep(part.problem);
  if (!sections.single_span && n > kMostWithGaps) return {};
  // Without a node for every buffer, not even the first descent can end.
  std::int64_t nodes = std::min(effort.nodes, effort.visits / node_cost(sections));
  if (nodes < n) return {};
  nodes = std::min(nodes, kNodesBeyond + kNodesPerBuffer * n);
  if (!sections.single_span) nodes = std::min(nodes, kNodesWithGaps);
  return exact_fit(part.problem, sections, capacity, {}, nodes, 1, seed, stopper);
}

}  // namespace memplan::chain
