// The limits at which a search that can only say "fits" or "does not fit" is probed until the least
// peak is known (docs/algorithms/prover.md, "Search and prover").
#pragma once

#include <cstdint>
#include <functional>

#include "memplan/plan.h"
#include "memplan/types.h"
#include "solve/incumbent.h"
#include "solve/stride.h"

namespace memplan {

class Prober {
 public:
  // Is there a plan with a peak of at most `limit`? A search may resume where it stopped when it is
  // probed again at the same limit.
  using Search = std::function<Plan(Bytes limit, std::int64_t nodes)>;

  // `name` is the name of the search in statistics and traces.
  Prober(Incumbent& incumbent, Search search, const char* name);

  bool has_search() const { return search_ != nullptr; }

  // Probes from the lower bound upwards, or the capacity and the bound where a fit was asked, with
  // `slice` nodes for a limit and `nodes` in all. Returns false where no probe used most of its
  // slice: then a longer one would not help.
  bool probe_from_bound(std::int64_t slice, std::int64_t nodes);
  // Probes the bound alone, where at least half of all sections are full at it: then the sweep over
  // full sections leaves little to search.
  void probe_full_bound(std::int64_t nodes);
  // Probes easier limits, each half-way from the one before to the best plan, and rounded down to a
  // peak that a plan could have; returns what probe_from_bound() does.
  bool probe_halfway(std::int64_t slice);

 private:
  bool probe_capacity_and_bound(std::int64_t slice, std::int64_t nodes);
  Status probe(Bytes limit, std::int64_t nodes);

  Incumbent& incumbent_;
  Search search_;
  const char* name_;
  Stride stride_;
};

// Probes with one search alone, round after round, until no limit is left or the budget is spent.
void probe_in_rounds(Incumbent& incumbent, Prober::Search search, const char* name);

}  // namespace memplan
