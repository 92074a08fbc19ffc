// The exact search for a fit: do these buffers fit within a capacity?
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exact/portfolio.h"
#include "exact/task.h"
#include "memplan/budget.h"
#include "memplan/exact.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "model/items.h"

namespace memplan::exact {

// Resumable: where the budget ended a run, the next one continues it and has lost nothing that was
// learned.
class FitSearch {
 public:
  // Whether "above" and "below" are the only relations that a pair can have, if it meets: with
  // several spans or windows, listed conflicts or groups they are not, and none of the fast
  // search's rules holds.
  static bool suits(const Problem& problem, const Sections& sections) {
    return sections.single_span && problem.conflicts.empty() && problem.group.empty();
  }

  // `problem` and `sections` (which it must suit) and `options` must outlive it.
  FitSearch(const Problem& problem, const Sections& sections, Bytes capacity,
            const ExactOptions& options, std::uint64_t seed, const SearchMakers& makers);

  // Answers like exact_fit(); nodes and restarts are those of this run.
  Plan run(std::int64_t nodes, int threads, Stopper& stopper);

  Bytes capacity() const { return capacity_; }

 private:
  Plan infeasible(std::vector<BufferIdx> conflict, const char* note) const;

  const Problem& problem_;
  Bytes capacity_;
  const ExactOptions& options_;
  std::uint64_t seed_;
  SearchMakers makers_;
  Items items_;
  std::vector<Task> tasks_;
  std::size_t task_ = 0;                  // the one at work; those before are placed
  std::unique_ptr<Portfolio> portfolio_;  // on that one
  std::vector<Bytes> offsets_;            // by item
};

}  // namespace memplan::exact
