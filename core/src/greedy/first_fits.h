// The least of greedy: first fit in every order. For those who only want something to go down from.
#pragma once

#include <cstdint>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// As greedy(), up to the first plan whose peak is at most `target`.
Plan first_fits(const Problem& problem, const Sections& sections, Bytes target,
                std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
