#include "solve/prober.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "solve/round_robin.h"
#include "util/invariants.h"

namespace memplan {

Prober::Prober(Incumbent& incumbent, Search search, const char* name)
    : incumbent_(incumbent), search_(std::move(search)), name_(name) {}

// The bound is the optimum more often than not, and then a plan at the bound is its own proof.
bool Prober::probe_from_bound(std::int64_t slice, std::int64_t nodes) {
  if (incumbent_.fit_only()) return probe_capacity_and_bound(slice, nodes);
  while (!incumbent_.settled() && nodes > 0 && !incumbent_.stopper().look()) {
    const Bytes limit = stride_.next_limit(incumbent_);
    MEMPLAN_ASSERT(incumbent_.lower_bound() <= limit && limit <= incumbent_.top());
    const std::int64_t nodes_before = incumbent_.nodes_left();
    const Status status = probe(limit, std::min(slice, nodes));
    const std::int64_t spent = nodes_before - incumbent_.nodes_left();
    nodes -= spent;
    if (status == Status::kUnknown) return spent >= slice / 2;
    stride_.learn(incumbent_, status);
  }
  return true;
}

// With less room the search prunes more, so that it may find a plan at the bound long before one
// that could be higher.
bool Prober::probe_capacity_and_bound(std::int64_t slice, std::int64_t nodes) {
  bool more = false;
  for (const bool at_bound : {false, true}) {
    if (at_bound && !incumbent_.has_room()) continue;
    if (incumbent_.settled() || nodes <= 0 || incumbent_.stopper().look()) return true;
    const std::int64_t left = incumbent_.nodes_left();
    probe(at_bound ? incumbent_.lower_bound() : incumbent_.capacity(), std::min(slice, nodes));
    const std::int64_t spent = left - incumbent_.nodes_left();
    nodes -= spent;
    more = more || spent >= slice / 2;
  }
  return more || incumbent_.settled();
}

void Prober::probe_full_bound(std::int64_t nodes) {
  const Bytes bound = incumbent_.lower_bound();
  const std::vector<Bytes> load = loads(incumbent_.sections());
  if (2 * std::count(load.begin(), load.end(), bound) >= incumbent_.sections().count) {
    probe(bound, nodes);
  }
}

bool Prober::probe_halfway(std::int64_t slice) {
  const Bytes unit = incumbent_.unit();
  bool more = false;
  Bytes limit = incumbent_.lower_bound();
  while (incumbent_.is_open() && limit / unit < incumbent_.top() / unit) {
    limit += std::max(unit, (incumbent_.top() - limit + 1) / 2);
    limit -= limit % unit;
    MEMPLAN_ASSERT(limit > incumbent_.lower_bound() && limit <= incumbent_.top());
    const std::int64_t nodes_before = incumbent_.nodes_left();
    const Status status = probe(limit, std::min(slice, incumbent_.nodes_left()));
    if (status != Status::kUnknown) return true;
    more = more || nodes_before - incumbent_.nodes_left() >= slice / 2;
  }
  return more;
}

Status Prober::probe(Bytes limit, std::int64_t nodes) {
  const Incumbent::Lap lap(incumbent_, name_);
  MEMPLAN_ASSERT(limit >= incumbent_.lower_bound());  // so that no pin ends above it
  Plan answer = search_(limit, nodes);
  // A refutation of the bound may be one of the capacity too, but it does not name what does not
  // fit there.
  if (answer.status == Status::kInfeasible && incumbent_.fit_only() &&
      limit < incumbent_.capacity() &&
      next_reachable_peak(incumbent_.problem(), incumbent_.sections(), limit + 1) >
          incumbent_.capacity()) {
    answer.status = Status::kUnknown;
  }
  return incumbent_.learn(limit, nodes, std::move(answer), name_);
}

void probe_in_rounds(Incumbent& incumbent, Prober::Search search, const char* name) {
  Prober prober(incumbent, std::move(search), name);
  std::int64_t slice = first_slice(incumbent.problem());
  for (bool more = true; more && incumbent.is_open(); slice = next_slice(slice)) {
    more = prober.probe_from_bound(slice, incumbent.nodes_left());
    if (incumbent.settled() || incumbent.fit_only()) continue;
    more = prober.probe_halfway(slice) || more;
  }
}

}  // namespace memplan
