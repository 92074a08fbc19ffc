// Functions that the entries of the C API share.
#pragma once

#include <cstddef>
#include <exception>
#include <limits>
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
  bool proof_complete = false;
};

namespace memplan::c_api {

// Copies a sentence into the caller's buffer, cut to fit; the buffer may be missing.
void say(const char* sentence, char* error, std::size_t error_size);

// Throws std::invalid_argument with this sentence unless `ok`.
void require(bool ok, const char* sentence);

// The sentences for a problem that is NULL, and for lists that no problem can have.
constexpr const char* kNoProblem = "the problem must not be NULL";
constexpr std::size_t kMostRows = std::numeric_limits<BufferIdx>::max() / 4;

// Runs `body` and catches its exceptions, since none may reach C: their sentence goes to `error`,
// and the result is `failed`.
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

// Replaces a list or a column of the problem by what `make` returns for so many buffers; where that
// throws, the problem stays as it was.
template <typename Member, typename Make>
int replace(memplan_problem* problem, Member Problem::* member, char* error, std::size_t error_size,
            Make make) {
  return guarded(0, error, error_size, [&] {
    require(problem != nullptr, kNoProblem);
    problem->problem.*member = make(problem->problem.size.size());
    return 1;
  });
}

// The defaults, with what the caller has set; NULL for the defaults alone.
SolveOptions converted(const memplan_options* options);

// The body of an entry for a solver: converts the options of C, calls `solve`, and converts the
// plan.
using SolveBy = Plan(const Problem& problem, const SolveOptions& options);
memplan_plan* solved(const memplan_problem* problem, const memplan_options* options, char* error,
                     std::size_t error_size, SolveBy* solve);

}  // namespace memplan::c_api
