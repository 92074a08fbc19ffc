// A complete search over the relations of pairs, for any mix of gaps and windows.
#pragma once

#include <cstdint>

#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// Fit within `capacity`: kFits, kInfeasible (proved; `conflict` is filled), or
// kUnknown where the budget ran out, where too many pairs are live together, or where bounds creep
// (stats.note says which). Peak and offsets are filled, lower_bound is left for the caller.
Plan pairs_fit(const Problem& problem, const Sections& sections, Bytes capacity,
               std::int64_t node_budget, Stopper& stopper);

}  // namespace memplan
