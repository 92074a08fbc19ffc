// Solvers that can be linked alone.
//
// Each is in a file of its own that names only what it uses. So a program that calls one of them,
// and not solve(), which names all, is linked with that one alone.
#pragma once

#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "memplan/solve.h"
#include "solve/incumbent.h"

namespace memplan {

// These do what solve() does, but ignore options.solver and options.proof.
Plan solve_greedy(const Problem& problem, const SolveOptions& options);
// First fit in many orders, then the exact search: complete. It refuses gaps, for which its rules
// do not hold.
Plan solve_search(const Problem& problem, const SolveOptions& options);

// The solver inside solve_greedy().
void run_greedy(Incumbent& incumbent);

// Throws std::invalid_argument for a problem that is not well formed, and for a fit without a
// capacity. Returns its sections.
Sections require_well_posed(const Problem& problem, const SolveOptions& options);

}  // namespace memplan
