#include "solve/kernels.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/subproblem.h"
#include "solve/part.h"
#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

namespace {

// Ranking the others may look at so many pairs, which takes some tens of milliseconds.
constexpr std::int64_t kMostPairs = 20'000'000;
constexpr std::int64_t kLeastKernelNodes = 100;

// What is set aside is taken out of the addresses and what was above it sinks. That would move pins
// and reserved ranges and break alignments, and a gap might have held it.
bool suits(const Problem& problem) {
  return has_relations(problem) && !limits_places(problem) && problem.gaps.empty();
}

}  // namespace

Kernels::Kernels(Incumbent& incumbent) : incumbent_(incumbent) {
  const Problem& problem = incumbent.problem();
  if (!suits(problem)) return;
  for (const BufferIdx b : incumbent.conflict()) {
    if (problem.size[b] > 0) heavy_.push_back(b);
  }
}

bool Kernels::conflict(BufferIdx a, BufferIdx b) const {
  const Problem& problem = incumbent_.problem();
  if (problem.start[a] < problem.end[b] && problem.start[b] < problem.end[a]) return true;
  return std::binary_search(problem.conflicts.first(a), problem.conflicts.last(a), b);
}

void Kernels::rank_others() {
  ranked_ = true;
  const Problem& problem = incumbent_.problem();
  if (problem.count() * static_cast<std::int64_t>(heavy_.size()) > kMostPairs) return;
  std::vector<Bytes> missing(problem.size.size(), 0);
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    for (const BufferIdx a : heavy_) missing[b] += a == b || conflict(a, b) ? 0 : problem.size[a];
  }
  std::vector<char> heavy(problem.size.size(), 0);
  for (const BufferIdx b : heavy_) heavy[b] = 1;
  for (const auto& [bytes, b] :
       ranked(missing.size(), [&missing](BufferIdx row) { return missing[row]; })) {
    if (heavy[b] == 0 && problem.size[b] > 0) others_.push_back(b);
  }
}

// A run is a set of members of a group that touch, which stay in one piece. Where one is missing
// between them, anything may lie there.
std::vector<std::vector<BufferIdx>> Kernels::runs(const std::vector<BufferIdx>& rows) const {
  const Problem& problem = incumbent_.problem();
  std::vector<std::vector<BufferIdx>> result;
  std::vector<BufferIdx> grouped;
  for (const BufferIdx b : rows) {
    if (problem.group_of(b) == kNoGroup) {
      result.push_back({b});
    } else {
      grouped.push_back(b);
    }
  }
  const auto key = [&problem](BufferIdx b) {
    return std::make_pair(problem.group[b], problem.lead[b]);
  };
  std::sort(grouped.begin(), grouped.end(),
            [&key](BufferIdx a, BufferIdx b) { return key(a) < key(b); });
  std::int32_t group = kNoGroup;
  Bytes reach = 0;  // of the run, in leads
  for (const BufferIdx b : grouped) {
    if (problem.group[b] != group || problem.lead[b] > reach) {
      result.emplace_back();
      reach = 0;
    }
    group = problem.group[b];
    reach = std::max(reach, problem.lead[b] + problem.size[b]);
    result.back().push_back(b);
  }
  return result;
}

// Takes out each row that is a run by itself and conflicts with all other rows, and returns the
// bytes of all of them. In any plan no other row has their addresses, and none of these is inside a
// run: without those addresses it is a plan of the rest.
Bytes Kernels::set_aside(const std::vector<BufferIdx>& rows,
                         std::vector<std::vector<BufferIdx>>* runs) const {
  Bytes bytes = 0;
  const auto apart = [&](const std::vector<BufferIdx>& run) {
    const BufferIdx b = run.front();
    return run.size() == 1 && std::all_of(rows.begin(), rows.end(), [&](BufferIdx other) {
             return other == b || conflict(b, other);
           });
  };
  const auto rest = std::stable_partition(runs->begin(), runs->end(),
                                          [&apart](const auto& run) { return !apart(run); });
  for (auto run = rest; run != runs->end(); ++run) {
    MEMPLAN_ASSERT(run->size() == 1);
    bytes += incumbent_.problem().size[run->front()];
  }
  runs->erase(rest, runs->end());
  return bytes;
}

bool Kernels::round(BufferIdx width, std::int64_t visits) {
  if (heavy_.empty()) return false;
  if (!ranked_) rank_others();
  if (static_cast<std::size_t>(width) > others_.size()) return false;
  std::vector<BufferIdx> rows = heavy_;
  rows.insert(rows.end(), others_.begin(), others_.begin() + width);
  std::vector<std::vector<BufferIdx>> pieces = runs(rows);
  const Bytes aside = set_aside(rows, &pieces);
  Problem part = part_of(pieces);
  const std::int64_t pairs = std::max<std::int64_t>(1, std::int64_t{part.count()} * part.count());
  learn_from_part(incumbent_, std::move(part), aside, std::move(rows),
                  std::max(kLeastKernelNodes, visits / pairs), "kernel", "refuted in a kernel");
  return true;
}

// Makes a problem of the pieces, each of which is a group of its own.
Problem Kernels::part_of(const std::vector<std::vector<BufferIdx>>& pieces) const {
  const Problem& problem = incumbent_.problem();
  std::vector<BufferIdx> rows;
  std::vector<std::int32_t> group;
  std::vector<Bytes> lead;
  for (const std::vector<BufferIdx>& piece : pieces) {
    const bool alone = piece.size() == 1;
    for (const BufferIdx b : piece) {
      rows.push_back(b);
      group.push_back(alone ? kNoGroup : static_cast<std::int32_t>(&piece - pieces.data()));
      MEMPLAN_ASSERT(alone || problem.lead[b] >= problem.lead[piece.front()]);
      lead.push_back(alone ? 0 : problem.lead[b] - problem.lead[piece.front()]);
    }
  }
  Problem part = subproblem(problem, rows);
  part.hint.clear();
  if (!part.group.empty()) {
    part.group = std::move(group);
    part.lead = std::move(lead);
  }
  return part;
}

}  // namespace memplan
