// What the entries of the C door share.
#pragma once

#include <cstddef>
#include <exception>
#include <new>

#include "memplan/c_api.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/solve.h"

struct memplan_problem {
  memplan::Problem problem;
};

struct memplan_plan {
  memplan::Plan plan;
};

namespace memplan::c_api {

// Cut to fit into the caller's buffer, which may be none.
void say(const char* sentence, char* error, std::size_t error_size);

// Runs `body`, whose exceptions end here: as their sentence, and as `failed`.
template <typename Result, typename Body>
Result guarded(Result failed, char* error, size_t error_size, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    say("there is not enough memory", error, error_size);
  } catch (const std::exception& e) {
    say(e.what(), error, error_size);
  } catch (...) {
    say("the search failed for a reason that it did not give", error, error_size);
  }
  return failed;
}

// What an entry for a solver does: `solve`, between the options and the plan of C.
using SolveBy = Plan(const Problem& problem, const SolveOptions& options);
memplan_plan* solved(const memplan_problem* problem, const memplan_options* options, char* error,
                     std::size_t error_size, SolveBy* solve);

}  // namespace memplan::c_api
