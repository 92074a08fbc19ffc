// One door to every solver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "memplan/budget.h"
#include "memplan/exact.h"
#include "memplan/greedy.h"
#include "memplan/large.h"
#include "memplan/option.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/prover.h"
#include "memplan/round.h"
#include "memplan/sections.h"

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

struct OutsideSolver;

struct SolveOptions {
  std::string solver = "auto";                   // a name from solvers()
  std::shared_ptr<const OutsideSolver> outside;  // runs in place of `solver`, where it is set
  Objective objective = Objective::kMinPeak;
  Budget budget;
  int threads = 1;  // never changes the answer, only the time
  std::uint64_t seed = 0;
  Stopper::Interrupt interrupt;  // asked every 20 ms; true stops the search
  MEMPLAN_FIRST_OPTIONS(MEMPLAN_FIELD)
  GreedyOptions greedy;
  ExactOptions exact;
  ProverOptions prover;
  LargeOptions large;
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

// Whether a plan is made before a solver, and at any price after it where it has found none.
enum class OurPlans {
  kAlways,
  kForPeak,  // in a search for a fit, the first plan is the last one
  kNever,    // the solver is measured as it was published
};

// A solver that is not in the table above. solve() asks it as it asks those of the table: bounds,
// first plans, limits to probe and the statistics are the same for all.
struct OutsideSolver {
  using Search = std::function<Plan(const Problem& problem, const Sections& sections, Bytes limit,
                                    std::int64_t nodes, Stopper& stopper)>;

  Solver is;
  OurPlans plans = OurPlans::kForPeak;
  // Is there a plan with a peak of at most `limit`? Asked until the least peak is known, by the
  // thread that called solve(). What it throws comes out of solve() as it is.
  Search search;
  // Whether `search` is asked once, for the best plan that it can make, whatever the limit.
  bool once = false;
  // The nodes of a search that does not end by itself where the caller sets no limit: so many, and
  // one for each buffer; 0 for a search that ends.
  std::int64_t nodes = 0;
};

// The options of `options->solver`, none for a name that no solver has. For `auto`, an option that
// several parts have is listed once for each of them.
std::vector<Option> options_of(SolveOptions* options);

}  // namespace memplan
