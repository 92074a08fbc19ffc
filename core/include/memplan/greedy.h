// First fit and best fit over a portfolio of orders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

#define MEMPLAN_GREEDY_OPTIONS(OPTION)                                                       \
  OPTION(Names, orders, Names(),                                                             \
         "names of orders from greedy_orders(), tried in this sequence; the default is all") \
  OPTION(bool, first_fit, true, "place each buffer at its lowest free offset")               \
  OPTION(bool, best_fit, true,                                                               \
         "then place into the tightest hole, with the most promising orders first")

struct GreedyOptions {
  // The orders "hint" and "tela" place in their own way, and count as first fit.
  MEMPLAN_GREEDY_OPTIONS(MEMPLAN_FIELD)
  // Stop at the first plan whose peak is at or below this (the lower bound, or the capacity).
  Bytes target = 0;
};

const std::vector<std::string>& greedy_orders();

// The first thing to try, and often the last: first fit below `target`, where the buffers with the
// least room go first. A buffer that cannot be placed then shows early, after some three per cent
// of a pass, and the pass ends there. That buffer, the squeaky wheel, moves to half its place in
// the order, and the pass starts again (squeaky wheel optimization, Joslin and Clements 1999).
// Returns a plan at or below the target, or none. It does nothing where the nodes that it leaves
// would not be enough for a whole pass.
Plan squeaky_wheel(const Problem& problem, const Sections& sections, Bytes target,
                   std::int64_t node_budget, Stopper& stopper);

// The same on the skyline (TelaMalloc, section 3.1), for problems with listed conflicts and groups:
// a plan at the target may waste nothing where the load is greatest, and filling the lowest place
// first leaves no holes next to a group of which a part is not live yet. When one order is
// exhausted, similar ones follow until the nodes are spent.
Plan skyline_wheel(const Problem& problem, const Sections& sections, Bytes target,
                   std::int64_t node_budget, std::uint64_t seed, Stopper& stopper);

// The best plan over the portfolio: kFeasible, or kUnknown where no pass fits the capacity (and
// the pins and reserved ranges). lower_bound is left for the caller. `sections` may be contracted.
// Throws std::invalid_argument for an order that is not one of greedy_orders().
Plan greedy(const Problem& problem, const Sections& sections, const GreedyOptions& options,
            std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
