#include "model/subproblem.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "util/invariants.h"

namespace memplan {

namespace {

template <typename T>
std::vector<T> picked(const std::vector<T>& column, const std::vector<BufferIdx>& rows) {
  std::vector<T> result;
  if (column.empty()) return result;
  result.reserve(rows.size());
  for (const BufferIdx row : rows) result.push_back(column[row]);
  return result;
}

// Returns the part of a relation that is between the rows.
Conflicts between(const Conflicts& conflicts, const std::vector<BufferIdx>& rows) {
  Conflicts part;
  if (conflicts.empty()) return part;
  std::vector<BufferIdx> rank(conflicts.begin.size() - 1, -1);
  for (std::size_t i = 0; i < rows.size(); ++i) rank[rows[i]] = static_cast<BufferIdx>(i);
  part.begin.push_back(0);
  for (const BufferIdx row : rows) {
    const auto first = static_cast<std::ptrdiff_t>(part.other.size());
    for (const BufferIdx* other = conflicts.first(row); other != conflicts.last(row); ++other) {
      if (rank[*other] >= 0) part.other.push_back(rank[*other]);
    }
    std::sort(part.other.begin() + first, part.other.end());
    part.begin.push_back(static_cast<std::int64_t>(part.other.size()));
  }
  return part;
}

// The members of a group that are left keep their distances, and the lowest gets the lead 0.
void close_up(Problem* part) {
  std::map<std::int32_t, Bytes> least;
  for (BufferIdx b = 0; b < static_cast<BufferIdx>(part->group.size()); ++b) {
    if (part->group[b] == kNoGroup) continue;
    Bytes& lead = least.emplace(part->group[b], part->lead[b]).first->second;
    lead = std::min(lead, part->lead[b]);
  }
  for (BufferIdx b = 0; b < static_cast<BufferIdx>(part->group.size()); ++b) {
    MEMPLAN_ASSERT(part->group[b] == kNoGroup || part->lead[b] >= least[part->group[b]]);
    if (part->group[b] != kNoGroup) part->lead[b] -= least[part->group[b]];
  }
}

}  // namespace

Problem subproblem(const Problem& problem, const std::vector<BufferIdx>& rows) {
  for (const BufferIdx row : rows) MEMPLAN_ASSERT(row >= 0 && row < problem.count());
  Problem part;
  part.start = picked(problem.start, rows);
  part.end = picked(problem.end, rows);
  part.size = picked(problem.size, rows);
  part.alignment = picked(problem.alignment, rows);
  part.pin = picked(problem.pin, rows);
  part.hint = picked(problem.hint, rows);
  part.reserved = problem.reserved;
  part.capacity = problem.capacity;
  part.conflicts = between(problem.conflicts, rows);
  part.group = picked(problem.group, rows);
  part.lead = picked(problem.lead, rows);
  close_up(&part);
  if (problem.gaps.empty()) return part;

  std::vector<std::size_t> begin(problem.size.size() + 1, 0);  // of each buffer's gaps
  for (const Gap& gap : problem.gaps) ++begin[gap.buffer + 1];
  for (std::size_t b = 1; b < begin.size(); ++b) begin[b] += begin[b - 1];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = begin[rows[i]]; k < begin[rows[i] + 1]; ++k) {
      part.gaps.push_back(problem.gaps[k]);
      part.gaps.back().buffer = static_cast<BufferIdx>(i);
    }
  }
  return part;
}

}  // namespace memplan
