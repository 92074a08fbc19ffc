// The answer of a solver.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memplan/types.h"

namespace memplan {

enum class Status {
  kOptimal,     // the peak equals a proven lower bound
  kFeasible,    // a plan, not proved to be the best
  kInfeasible,  // proved: no plan exists within the capacity
  kUnknown,     // the budget ran out without a plan
  kFits,        // a plan within the capacity, where a smaller peak was not asked for
};

const char* name(Status status);

// Whether an answer with this status comes with a plan.
constexpr bool has_plan(Status status) {
  return status != Status::kInfeasible && status != Status::kUnknown;
}

// The work of a solver. Everything here but `seconds` is the same in every run.
struct Stats {
  std::string solver;                                   // the one that found the answer
  std::int64_t nodes = 0;                               // search nodes, or placements for greedy
  std::int64_t restarts = 0;                            // search runs begun
  std::int64_t backtracks = 0;                          // of telamalloc: minor and major ones
  std::int64_t major_backtracks = 0;                    // of these, all candidates had failed
  std::vector<std::pair<std::string, double>> seconds;  // wall clock by phase
  std::string note;                                     // one clause on what decided the answer
  bool interrupted = false;                             // the caller's interrupt() said stop
};

struct Plan {
  Status status = Status::kUnknown;
  std::vector<Bytes> offsets;  // one per buffer; empty for kInfeasible and kUnknown
  Bytes peak = 0;              // max(offset + size); 0 without offsets
  Bytes lower_bound = 0;       // proven: no plan has a smaller peak
  // For kInfeasible: buffers that cannot be placed together (not always irreducible).
  std::vector<BufferIdx> conflict;
  Stats stats;

  bool has_offsets() const { return has_plan(status); }
};

}  // namespace memplan
