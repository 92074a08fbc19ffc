// Functions that the entries of the C API share.
#pragma once

#include <cstddef>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <utility>

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

// The sentences for a problem that is NULL, and for lists that no problem can have.
constexpr const char* kNoProblem = "the problem must not be NULL";
constexpr std::size_t kMostRows = std::numeric_limits<BufferIdx>::max() / 4;

// Runs `body`, which returns what is wrong, as a sentence, or nothing. Its exceptions are caught,
// since none may reach C. The sentence goes to `error`; false if there is one.
template <typename Body>
bool guarded(char* error, std::size_t error_size, const Body& body) {
#ifdef __cpp_exceptions
  try {
#endif
    const std::string fault = body();
    if (fault.empty()) return true;
    say(fault.c_str(), error, error_size);
#ifdef __cpp_exceptions
  } catch (const std::bad_alloc&) {
    say("there is not enough memory", error, error_size);
  } catch (const std::exception& e) {
    say(e.what(), error, error_size);
  } catch (...) {
    say("the search failed for a reason that it did not give", error, error_size);
  }
#endif
  return false;
}

// Replaces a list or a column of the problem by what `make` writes for so many buffers; where it
// returns a sentence, or throws, the problem stays as it was.
template <typename Member, typename Make>
int replace(memplan_problem* problem, Member Problem::* member, char* error, std::size_t error_size,
            const Make& make) {
  const bool done = guarded(error, error_size, [&]() -> std::string {
    if (problem == nullptr) return kNoProblem;
    Member made{};
    std::string fault = make(problem->problem.size.size(), &made);
    if (fault.empty()) problem->problem.*member = std::move(made);
    return fault;
  });
  return done ? 1 : 0;
}

// The defaults, with what the caller has set; NULL for the defaults alone. Returns what is wrong.
std::string convert(const memplan_options* options, SolveOptions* chosen);

// The body of an entry for a solver: converts the options of C, calls `solve`, and converts the
// plan.
using SolveBy = std::string(const Problem& problem, const SolveOptions& options, Plan* plan);
memplan_plan* solved(const memplan_problem* problem, const memplan_options* options, char* error,
                     std::size_t error_size, SolveBy* solve);

}  // namespace memplan::c_api
