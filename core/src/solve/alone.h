// Solvers that can be linked alone.
//
// Each is in a file of its own that names only what it uses. So a program that calls one of them,
// and not solve(), which names all, is linked with that one alone.
#pragma once

#include <string>

#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "memplan/solve.h"
#include "solve/incumbent.h"

namespace memplan {

// These do what solve() does, but return what is wrong with the problem or the options, as a
// sentence, or else nothing, and set `plan`. The C API must work without exceptions.
std::string try_solve(const Problem& problem, const SolveOptions& options, Plan* plan);
// These ignore options.solver, options.outside and options.proof.
std::string try_greedy(const Problem& problem, const SolveOptions& options, Plan* plan);
// First fit in many orders, then the exact search: complete. It refuses gaps, for which its rules
// do not hold.
std::string try_search(const Problem& problem, const SolveOptions& options, Plan* plan);

// The solver inside try_greedy().
void run_greedy(Incumbent& incumbent);

// What is wrong with a problem that is not well formed, or with a fit without a capacity; or else
// nothing, and its sections.
std::string check_posed(const Problem& problem, const SolveOptions& options, Sections* sections);

}  // namespace memplan
