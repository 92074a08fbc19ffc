#include "greedy/first_fits.h"

#include <utility>

#include "greedy/best_pass.h"
#include "greedy/orders.h"

namespace memplan {

Plan first_fits(const Problem& problem, const Sections& sections, Bytes target,
                std::int64_t node_budget, Stopper& stopper) {
  const Profile profile(problem, sections, stopper);
  Passes passes(problem, sections, stopper);
  BestPass best(problem, node_budget);
  std::int64_t fastest = kNoLimit;
  for (const Order& order : orders()) {
    if (best.enough(target, stopper)) break;
    best.limits.steps = times(kPatience, fastest);
    best.take(passes.in_order(sorted(order.key, profile, stopper), Fit::kFirst, best.limits),
              "first fit", &fastest);
  }
  return std::move(best.plan);
}

}  // namespace memplan
