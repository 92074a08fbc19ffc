// First fit and best fit over a portfolio of orders.
#pragma once

#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

struct GreedyOptions {
  // Names from greedy_orders(); empty: the whole portfolio, first fit in that order.
  std::vector<std::string> orders;
  bool first_fit = true;  // "hint" and "tela", which place in their own way, count as this
  bool best_fit = true;   // after all of the above, the most promising orders first
  // Stop at the first plan whose peak is at or below this (the lower bound, or the capacity).
  Bytes target = 0;
};

const std::vector<std::string>& greedy_orders();

// The best plan over the portfolio: kFeasible, or kUnknown where no pass fits the capacity (and
// the pins and reserved ranges). lower_bound is left for the caller. `sections` may be contracted.
// Throws std::invalid_argument for an order that is not one of greedy_orders().
Plan greedy(const Problem& problem, const Sections& sections, const GreedyOptions& options,
            std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
