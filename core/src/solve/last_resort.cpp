#include "solve/last_resort.h"

#include <limits>
#include <utility>

#include "greedy/best_pass.h"
#include "greedy/coalescing.h"
#include "greedy/orders.h"
#include "greedy/passes.h"

namespace memplan {

bool lacks_plan(const Incumbent& incumbent) {
  return !incumbent.has_plan() && !incumbent.settled() && !incumbent.problem().capacity &&
         incumbent.options().greedy.orders.empty();
}

Plan coalesce(const Incumbent& incumbent, Bytes limit) {
  BestPass best(incumbent.problem(), kNoLimit);
  std::int64_t steps = kNoLimit;
  Draft draft = coalescing_fit(incumbent.problem(), incumbent.sections(), limit);
  draft.complete = draft.complete && draft.peak <= incumbent.capacity();
  best.take(std::move(draft), "best fit in order of time", &steps);
  return std::move(best.plan);
}

void first_fit_anyway(Incumbent& incumbent, std::int64_t steps) {
  const Incumbent::Lap lap(incumbent, "greedy");
  const Problem& problem = incumbent.problem();
  Stopper never(std::numeric_limits<double>::infinity());
  const Profile profile(problem, incumbent.sections(), never);
  BestPass best(problem, kNoLimit);
  best.limits.steps = steps;
  best.take(
      Passes(problem, incumbent.sections(), never)
          .in_order(sorted(order_of("room_length").key, profile, never), Fit::kFirst, best.limits),
      "first fit", &steps);
  incumbent.offer(std::move(best.plan), "greedy");
}

void coalesce_anyway(Incumbent& incumbent) {
  const Incumbent::Lap lap(incumbent, "greedy");
  incumbent.offer(coalesce(incumbent, incumbent.capacity()), "greedy");
  // Without a limit the uppermost free piece has no end, so that the best fit may be another one.
  if (incumbent.has_room() && !incumbent.has_plan()) {
    incumbent.offer(coalesce(incumbent, kMaxBytes), "greedy");
  }
}

}  // namespace memplan
