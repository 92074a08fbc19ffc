// One door to every solver.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/exact.h"
#include "memplan/greedy.h"
#include "memplan/large.h"
#include "memplan/minimalloc.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/prover.h"
#include "memplan/rectangles.h"
#include "memplan/round.h"
#include "memplan/somas.h"
#include "memplan/telamalloc.h"

namespace memplan {

enum class Objective {
  kFit,      // stop at the first plan within the capacity
  kMinPeak,  // find the smallest peak (within the capacity, if there is one)
};

// What is known while a solver is at work.
struct Progress {
  double seconds = 0;     // since the start
  bool has_plan = false;  // peak means nothing before
  Bytes peak = 0;         // of the best plan
  Bytes lower_bound = 0;
  std::string phase;  // what is at work: greedy, exact, prover, ...
  std::int64_t nodes = 0;
};

// A solver that begins with a plan runs the squeaky wheel first, as it often ends there. It does
// not where hints are to be kept, and not where greedy is to run without first fit or with certain
// orders only.
#define MEMPLAN_FIRST_OPTIONS(OPTION)                                                            \
  OPTION(bool, squeaky_wheel, true,                                                              \
         "begin with repeated first fit at the target; rejected buffers go earlier in the next " \
         "order")

struct SolveOptions {
  std::string solver = "auto";  // a name from solvers()
  Objective objective = Objective::kMinPeak;
  Budget budget;
  int threads = 1;  // never changes the answer, only the time
  std::uint64_t seed = 0;
  Stopper::Interrupt interrupt;  // asked every 20 ms; true stops the search
  MEMPLAN_FIRST_OPTIONS(MEMPLAN_FIELD)
  GreedyOptions greedy;
  MiniMallocOptions minimalloc;
  ExactOptions exact;
  ProverOptions prover;
  LargeOptions large;
  SomasOptions somas;
  TelamallocOptions telamalloc;
  CspOptions csp;
  MetaCspOptions meta_csp;
  // Called by the thread that called solve(), when the best plan or the bound has changed and
  // about twice a second; may be empty.
  std::function<void(const Progress&)> progress;
  // Called by the same thread when a round has ended; may be empty. It changes no answer.
  Tracer trace;
  // Where a refutation is written down (docs/proofs.md), or null. If it is set, only the prover
  // refutes, since the other engines write no proofs.
  std::ostream* proof = nullptr;
};

// Throws std::invalid_argument, with the sentence of check(), for a problem that is not well
// formed, and for an unknown solver. No plan that it returns has been verified: the caller should
// ask for that, from code that shares nothing with the solvers.
Plan solve(const Problem& problem, const SolveOptions& options);

// The options that a solver reads, by the part of SolveOptions that holds them.
enum OptionSet : unsigned {
  kFirstOptions = 1,
  kGreedyOptions = 2,
  kLargeOptions = 4,
  kExactOptions = 8,
  kProverOptions = 16,
  kMiniMallocOptions = 32,
  kTelamallocOptions = 64,
  kSomasOptions = 128,
  kCspOptions = 256,
  kMetaCspOptions = 512,
};

// The constraints that some solvers do not keep. All of them keep capacities, hints, sizes of 0 and
// gaps without windows.
enum Constraint : unsigned {
  kPlaces = 1,     // alignments, pins and reserved ranges
  kWindows = 2,    // in gaps
  kRelations = 4,  // conflicts and groups
};

// A solver, as data.
struct Solver {
  const char* name;
  const char* says;       // what it is, in a line
  unsigned lacks;         // a sum of Constraint: what it refuses by name
  unsigned options;       // a sum of OptionSet
  bool proves = false;    // it can write down why no plan is better
  bool baseline = false;  // it is here to be compared with
};

// All that SolveOptions::solver may name.
const std::vector<Solver>& solvers();

// The options of `options->solver`, none for a name that no solver has. For `auto`, an option that
// several parts have is listed once for each of them.
std::vector<Option> options_of(SolveOptions* options);

}  // namespace memplan
