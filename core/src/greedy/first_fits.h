// The cheapest part of greedy: first fit in every order. It is for solvers that only need a plan to
// improve on.
#pragma once

#include <cstdint>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Runs like greedy(), up to the first plan with a peak of at most `target`.
Plan first_fits(const Problem& problem, const Sections& sections, Bytes target,
                std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
