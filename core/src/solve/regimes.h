// What `auto` does with a problem, by its size and its constraints, and the limits of its turns.
// docs/algorithms/auto.md shows the table of regimes; core/tests/test_solve.cpp compares them.
#pragma once

#include <cstdint>

#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

// What a row may ask for, in the sequence in which `auto` does it.
enum Turn : unsigned {
  kPlanInTime = 1,  // a plan in order of time first, since a pass of the chain may take seconds
  kKernels = 2,     // bounds from kernels: no search finds a plan at a bound that is out of reach
  kDives = 4,       // the exact search dives for a plan at the bound, which proves itself
  kGreedy = 8,      // all passes of greedy: they cost as little as some nodes of the search
  kSearch = 16,     // rounds of search and prover; without them, rounds of windows or kernels only
};

// What makes a row suit a problem.
enum Trait : unsigned {
  kRelated = 1,  // conflicts or groups
  kGapped = 2,   // gaps or windows
  kPlaced = 4,   // pins or reserved ranges
};

constexpr BufferIdx kAnyCount = INT32_MAX;
constexpr std::int64_t kAllNodes = INT64_MAX;  // of the budget

// The first row that suits a problem says what is done with it.
struct Regime {
  BufferIdx most;            // buffers
  unsigned traits;           // it has one of these; 0: any problem
  std::int64_t chain;        // nodes for each buffer, of the chain for large problems
  std::int64_t chain_again;  // the same for its second turn, after the dives
  unsigned turns;
};

// Conflicts, groups and gaps make all engines but the chain slow: they go down from a poor plan
// byte by byte. So the chain has a large share there. Dives seldom find a plan with pins and
// reserved ranges. Where they do not, the chain searches the fullest parts once more, in problems
// whose rounds take many microseconds for a node. Beyond 10,000 buffers search and prover have no
// hope, and only windows or kernels can raise the bound.
constexpr Regime kRegimes[] = {
    {500, kRelated, 1000, 0, kKernels | kGreedy | kSearch},
    {10000, kRelated, 1000, 0, kKernels | kSearch},
    {kAnyCount, kRelated, kAllNodes, 0, kPlanInTime | kKernels},
    {500, kGapped, 1000, 0, kGreedy | kSearch},
    {500, kPlaced, 12, 0, kGreedy | kSearch},
    {500, 0, 12, 0, kDives | kGreedy | kSearch},
    {10000, kGapped | kPlaced, 400, 0, kSearch},
    {2000, 0, 12, 100, kDives | kSearch},
    {10000, 0, 100, 0, kSearch},
    {kAnyCount, 0, kAllNodes, 0, kPlanInTime},
};

// LIMIT(name, value, what it limits)
#define MEMPLAN_AUTO_LIMITS(LIMIT)                                                                 \
  LIMIT(kCrowd, 1000,                                                                              \
        "buffers live at once on average, from which a plan in order of time comes before all "    \
        "else: the first tries of first fit would take seconds")                                   \
  LIMIT(kAnyPlanNodes, 2, "nodes for each buffer of the chain before the kernels, for a plan")     \
  LIMIT(kNarrowKernel, 20, "buffers of the first kernel beyond those that attain the bound")       \
  LIMIT(kWideKernel, 40, "buffers of the second kernel beyond those that attain the bound")        \
  LIMIT(kKernelVisits, 32000000, "item visits of each of the two kernels")                         \
  LIMIT(kDiveVisits, 20000000, "item visits of all dives")                                         \
  LIMIT(kFirstDives, 200,                                                                          \
        "all dives, in lengths of the first one: by then each rule of the portfolio has had its "  \
        "turns, and other engines prove what is left")                                             \
  LIMIT(kFewDives, 16,                                                                             \
        "all dives of `exact`, in lengths of the first one: there, a first slice of the prover "   \
        "can take ten times as long as the search before it")                                      \
  LIMIT(kAutoVisits, 100000000,                                                                    \
        "item visits of the rounds if the caller gives no budget: about the same time for any "    \
        "size of problem, and the answer repeats")                                                 \
  LIMIT(kFirstWidth, 24,                                                                           \
        "buffers in the first window or kernel of the rounds; the width grows by half from round " \
        "to round")                                                                                \
  LIMIT(kVisitsPerNode, 10000, "item visits of a kernel of the rounds for each node of the slice") \
  LIMIT(kAnywaySteps, 1000, "steps of first fit for each buffer, after the budget has ended")

#define MEMPLAN_LIMIT(name, value, says) constexpr std::int64_t name = value;
MEMPLAN_AUTO_LIMITS(MEMPLAN_LIMIT)
#undef MEMPLAN_LIMIT

inline const Regime& regime_of(const Problem& problem, const Sections& sections) {
  const unsigned traits = (has_relations(problem) ? kRelated : 0U) |
                          (sections.single_span ? 0U : kGapped) |
                          (limits_offsets(problem) ? kPlaced : 0U);
  const Regime* row = kRegimes;
  const auto suits = [&] {
    return problem.count() <= row->most && (row->traits == 0 || (row->traits & traits) != 0);
  };
  while (!suits()) ++row;  // the last one suits all
  return *row;
}

}  // namespace memplan
