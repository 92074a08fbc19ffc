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

#define MEMPLAN_GREEDY_OPTIONS(OPTION)                                         \
  OPTION(Names, orders, Names(),                                               \
         "names from greedy_orders(), tried in this order; none: all of them") \
  OPTION(bool, first_fit, true, "place at the lowest offset that is free")     \
  OPTION(bool, best_fit, true, "then into the tightest hole, the most promising orders first")

struct GreedyOptions {
  // Of the orders, "hint" and "tela", which place in their own way, count as first fit.
  MEMPLAN_GREEDY_OPTIONS(MEMPLAN_FIELD)
  // Stop at the first plan whose peak is at or below this (the lower bound, or the capacity).
  Bytes target = 0;
};

const std::vector<std::string>& greedy_orders();

// The first thing to try, and often the last: first fit below `target`, where the buffers with the
// least room go first. What cannot be placed shows early then, after some three per cent of a
// pass, and the pass ends with it: the squeaky wheel goes to half its place in the order, and all
// begins anew (squeaky wheel optimization, Joslin and Clements 1999). A plan at or below the
// target, or none. Does nothing where the nodes would not do for a whole pass afterwards.
Plan squeaky_wheel(const Problem& problem, const Sections& sections, Bytes target,
                   std::int64_t node_budget, Stopper& stopper);

// The same on the skyline (source 001, section 3.1), for problems with listed conflicts and
// groups: in a plan at the target nothing may be lost where the load is greatest, and the lowest
// place first is what leaves no holes beside a group of which a part is not live yet. Where one
// order is exhausted, others like it, until the nodes are spent.
Plan skyline_wheel(const Problem& problem, const Sections& sections, Bytes target,
                   std::int64_t node_budget, std::uint64_t seed, Stopper& stopper);

// The best plan over the portfolio: kFeasible, or kUnknown where no pass fits the capacity (and
// the pins and reserved ranges). lower_bound is left for the caller. `sections` may be contracted.
// Throws std::invalid_argument for an order that is not one of greedy_orders().
Plan greedy(const Problem& problem, const Sections& sections, const GreedyOptions& options,
            std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
