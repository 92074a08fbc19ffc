// The linear relaxation with units: of the items of a unit that are live together, one at most.
//
// Parts of items can be chosen, as in the flow. But where items of a unit are several runs of one
// buffer, or places in several memories, the flow would choose many of them at once, so that its
// prices are far too high. Here shares of items and prices of all rules approach each other in
// small steps (a primal-dual hybrid gradient method that starts again from averages).
#pragma once

#include "choice/flow.h"
#include "choice/items.h"
#include "model/counter.h"

namespace memplan::choice {

// Whether two open items of some unit are live together.
bool has_rivals(const Items& items, const std::vector<Fixed>& fixed);

// The same relaxation as relax(), in which units hold too, in at most so many steps from another
// one on. With a `noise`, worths differ by so large a share, so that few items are taken in part.
Relaxed relax_units(const Items& items, const std::vector<Fixed>& fixed, const Reach& reach,
                    const Relaxed& from, std::size_t steps, double noise, std::uint64_t seed,
                    Counter& counter);

}  // namespace memplan::choice
