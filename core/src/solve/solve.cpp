#include "memplan/solve.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exact/portfolio.h"
#include "memplan/linearise.h"
#include "solve/alone.h"
#include "solve/beams.h"
#include "solve/begin.h"
#include "solve/exact_search.h"
#include "solve/incumbent.h"
#include "solve/kernels.h"
#include "solve/last_resort.h"
#include "solve/prober.h"
#include "solve/proof.h"
#include "solve/regimes.h"
#include "solve/round_robin.h"
#include "solve/search_and_prover.h"
#include "solve/windows.h"
#include "util/failure.h"

namespace memplan {

namespace {

class Run;

// A line of the table of solvers.
struct Entry {
  void (Run::*run)();
  OurPlans plans;
  Solver is;
};

// One call of solve().
class Run {
 public:
  Run(const Problem& problem, const SolveOptions& options, const Entry& solver, Sections sections)
      : options_(options),
        solver_(solver),
        incumbent_(problem, options, std::move(sections)),
        regime_(regime_of(problem, incumbent_.sections())) {}

  Plan run() {
    const bool is_auto = solver_.run == &Run::run_auto;
    if (is_auto && is_crowded() && !incumbent_.settled()) coalesce_anyway(incumbent_);
    Plan by_size;
    begin(incumbent_, wants_plan(), is_auto ? &by_size : nullptr);
    // When the time is over, the solver is skipped and only a plan is made.
    if (!incumbent_.settled() && !incumbent_.stopper().look()) (this->*solver_.run)();
    if (by_size.has_offsets() && !incumbent_.settled() && incumbent_.stopper().stopped()) {
      incumbent_.offer(std::move(by_size), "greedy");
    }
    if (solver_.plans != OurPlans::kNever && lacks_plan(incumbent_)) run_last_resort();
    if (options_.proof != nullptr) write_proof(incumbent_, options_.proof);
    return incumbent_.finish(solver_.is.name);
  }

  // What the table of solvers names.

  void run_greedy() { memplan::run_greedy(incumbent_); }

  void run_large() { run_large(incumbent_.nodes_left()); }

  void run_outside() {
    const OutsideSolver& outside = *options_.outside;
    const std::int64_t nodes = outside.nodes + incumbent_.problem().count();
    if (outside.nodes > 0 && open_ended(nodes)) incumbent_.limit_nodes(nodes);
    if (outside.once) return ask_once(outside);
    ask([this, &outside](Bytes limit, std::int64_t left) {
      return outside.search(incumbent_.problem(), incumbent_.sections(), limit, left,
                            incumbent_.stopper());
    });
  }

  void run_exact() { run_engines({exact_search(incumbent_), true}, kFewDives); }

  void run_prover() { run_engines({nullptr, true}); }

  // Follows the row of docs/algorithms/auto.md. Each turn is skipped once the question is settled.
  void run_auto() {
    const BufferIdx count = incumbent_.problem().count();
    if (has(kPlanInTime) && !incumbent_.has_plan()) coalesce_anyway(incumbent_);
    if (incumbent_.settled()) return;
    if (has(kGreedy) && !incumbent_.problem().hint.empty()) run_greedy();
    if (has(kKernels) && !incumbent_.settled()) run_kernels();
    if (!incumbent_.settled()) {
      run_large(regime_.chain == kAllNodes ? incumbent_.nodes_left() : regime_.chain * count);
    }
    SearchAndProver::Engines engines;
    if (has(kSearch)) engines = {exact_search(incumbent_), true};
    SearchAndProver both(incumbent_, std::move(engines));
    if (has(kDives) && !incumbent_.settled()) {
      dive(both, kFirstDives);
      if (regime_.chain_again > 0 && !incumbent_.settled()) run_large(regime_.chain_again * count);
    }
    if (!incumbent_.settled()) run_beams(incumbent_);
    if (has(kGreedy) && !incumbent_.settled()) run_greedy();
    if (incumbent_.settled()) return;
    if (open_ended(kAutoVisits)) incumbent_.limit_nodes(kAutoVisits / count);
    run_rounds(both);
  }

 private:
  bool wants_plan() const {
    if (solver_.plans == OurPlans::kForPeak) return !incumbent_.fit_only();
    return solver_.plans == OurPlans::kAlways;
  }

  bool has(Turn turn) const { return (regime_.turns & turn) != 0; }

  void dive(SearchAndProver& both, std::int64_t dives) {
    const BufferIdx count = incumbent_.problem().count();
    both.dive(std::min(
        {kDiveVisits / count, dives * exact::first_dive(count), incumbent_.nodes_left() / 10}));
  }

  bool is_crowded() const {
    const Sections& sections = incumbent_.sections();
    if (!has(kPlanInTime) || sections.count == 0) return false;
    std::int64_t live = 0;
    for (const Span& span : sections.spans) live += span.last - span.first + 1;
    return live / sections.count > kCrowd;
  }

  // First fit is better where it is cheap. Of many buffers, a pass may take minutes.
  void run_last_resort() {
    const BufferIdx count = incumbent_.problem().count();
    if (!has(kPlanInTime)) first_fit_anyway(incumbent_, kAnywaySteps * count);
    coalesce_anyway(incumbent_);
  }

  void run_large(std::int64_t nodes) {
    const Incumbent::Lap lap(incumbent_, "large");
    LargeOptions chosen = options_.large;
    if (chosen.target == 0) chosen.target = incumbent_.first_target();
    chosen.fit = incumbent_.has_room() && chosen.target < incumbent_.capacity();
    Tracer trace;
    if (options_.trace) trace = [this](const Round& round) { incumbent_.trace(round); };
    Plan plan = large(
        incumbent_.problem(), incumbent_.sections(), chosen,
        std::min(nodes, incumbent_.nodes_left()), options_.seed, incumbent_.stopper(),
        [this](const Plan& better) { incumbent_.offer(better, "large"); }, trace);
    incumbent_.charge(plan.stats);
    // A part was refuted on the way. The chain does not name its buffers, so the infeasible subset
    // is all of them.
    if (plan.lower_bound > incumbent_.lower_bound()) {
      std::vector<BufferIdx> all(incumbent_.problem().size.size());
      std::iota(all.begin(), all.end(), 0);
      incumbent_.refuted(plan.lower_bound - 1, std::move(all), "a part was refuted by search");
    }
    incumbent_.offer(std::move(plan), "large");
  }

  // Probes with a search that starts from nothing at each limit.
  void ask(const Prober::Search& search) {
    const char* name = solver_.is.name;
    if (incumbent_.fit_only()) {  // in one go
      const Incumbent::Lap lap(incumbent_, name);
      const Bytes capacity = incumbent_.capacity();
      const std::int64_t nodes = incumbent_.nodes_left();
      incumbent_.learn(capacity, nodes, search(capacity, nodes), name);
      return;
    }
    // A search for the least peak needs a first plan, which shows how far the optimum may be from
    // the bound.
    run_greedy();
    incumbent_.find_unit();
    probe_in_rounds(incumbent_, search, name);
  }

  void ask_once(const OutsideSolver& outside) {
    const Incumbent::Lap lap(incumbent_, outside.is.name);
    const std::int64_t nodes = incumbent_.nodes_left();
    Plan plan = outside.search(incumbent_.problem(), incumbent_.sections(), incumbent_.capacity(),
                               nodes, incumbent_.stopper());
    const std::string solver = plan.stats.solver;
    incumbent_.take(incumbent_.target(), nodes, std::move(plan), solver.c_str(), "");
  }

  // Whether the caller's budget is practically unlimited, compared with ours of so many nodes.
  bool open_ended(std::int64_t nodes) const {
    return options_.budget.seconds > 1e17 && options_.budget.nodes > nodes;
  }

  void run_engines(SearchAndProver::Engines engines, std::int64_t dives = 0) {
    if (!incumbent_.fit_only()) run_greedy();
    SearchAndProver both(incumbent_, std::move(engines));
    const bool empty = incumbent_.problem().count() == 0;
    if (dives > 0 && has(kDives) && !empty && !incumbent_.settled()) dive(both, dives);
    if (!incumbent_.settled()) run_rounds(both);
  }

  void run_kernels() {
    constexpr BufferIdx kWidths[] = {kNarrowKernel, kWideKernel};
    Kernels kernels(incumbent_);
    run_large(kAnyPlanNodes * incumbent_.problem().count());
    for (const BufferIdx width : kWidths) {
      const Bytes target = incumbent_.target();
      {
        const Incumbent::Lap lap(incumbent_, "kernels");
        if (incumbent_.settled() || !kernels.round(width, kKernelVisits)) return;
      }
      if (!incumbent_.settled() && incumbent_.target() > target) run_skyline_wheel(incumbent_);
    }
  }

  // Search and prover in turns with windows or kernels, until none of them could use more nodes.
  void run_rounds(SearchAndProver& both) {
    incumbent_.find_unit();
    Kernels kernels(incumbent_);
    Windows windows(incumbent_);
    constexpr BufferIdx kFirst = kFirstWidth;
    BufferIdx width = kFirst;
    std::int64_t slice = first_slice(incumbent_.problem());
    for (bool more = true; more && incumbent_.is_open(); slice = next_slice(slice)) {
      more = both.round(slice);
      if (incumbent_.settled()) return;
      const bool related = has_relations(incumbent_.problem());
      const Incumbent::Lap lap(incumbent_, related ? "kernels" : "windows");
      const bool tried =
          related ? kernels.round(width, slice * kVisitsPerNode) : windows.round(width, slice);
      width = tried ? width + width / 2 : kFirst;
      more = more || tried;
    }
  }

  const SolveOptions& options_;
  const Entry& solver_;
  Incumbent incumbent_;
  const Regime& regime_;
};

// Every solver, in the order in which they are listed: what runs it, whether other plans are made
// for it, and what it is (name, says, lacks, options, proves, baseline).
constexpr Entry kSolvers[] = {
    {&Run::run_auto,
     OurPlans::kAlways,
     {"auto", "large and greedy, then exact if it can improve the plan", 0,
      kFirstOptions | kGreedyOptions | kLargeOptions | kExactOptions | kProverOptions, true}},
    {&Run::run_greedy,
     OurPlans::kAlways,
     {"greedy", "first fit and best fit over many orders; no proof", 0,
      kFirstOptions | kGreedyOptions}},
    {&Run::run_exact,
     OurPlans::kForPeak,
     {"exact", "branch and bound, alternating with the prover", 0, kExactOptions | kProverOptions,
      true}},
    {&Run::run_prover,
     OurPlans::kForPeak,
     {"prover", "clause learning over the orders of pairs", kWindows, kProverOptions, true}},
    {&Run::run_large,
     OurPlans::kAlways,
     {"large", "for up to a million buffers: many orders, critical cores, windows", 0,
      kFirstOptions | kLargeOptions}},
};

// Nothing if there is no such solver.
std::optional<Entry> entry_of(const SolveOptions& options) {
  if (options.outside) return Entry{&Run::run_outside, options.outside->plans, options.outside->is};
  for (const Entry& each : kSolvers) {
    if (options.solver == each.is.name) return each;
  }
  return std::nullopt;
}

std::string unknown_solver(const std::string& solver) {
  std::string names;
  for (const Entry& each : kSolvers) {
    names += std::string(names.empty() ? "" : ", ") + each.is.name;
  }
  return "there is no solver '" + solver + "': choose one of " + names + ".";
}

// The same problem with lifetimes in place of its listed conflicts, if there are such: then the
// fast search and the bounds from sections apply to it. Then `sections` become those of the result.
std::optional<Problem> without_list(const Problem& problem, const SolveOptions& options,
                                    const Solver& solver, Stopper& stopper, Sections* sections) {
  if (!solver.proves || problem.conflicts.empty() || !problem.group.empty()) return std::nullopt;
  // This allows a few per cent of the time there is. A buffer costs as much as a pair.
  constexpr double kPairsPerSecond = 500'000;
  const auto most_pairs = static_cast<std::int64_t>(std::min(
      static_cast<double>(kMostPairsToLinearise), options.budget.seconds * kPairsPerSecond));
  if (problem.count() > most_pairs) return std::nullopt;
  std::optional<Problem> result = linearised(problem, stopper, most_pairs);
  // All that conflict with each other may be more than 2^62 bytes, where no time had so many.
  Sections swept;
  if (!result || !check(*result, &swept).empty()) return std::nullopt;
  *sections = std::move(swept);
  return result;
}

// What of the problem the solver does not support, as a sentence, or nothing.
std::string unsupported(const Problem& problem, const SolveOptions& options, const Solver& solver) {
  const std::string name = solver.name;
  if ((solver.lacks & kPlaces) != 0 && limits_places(problem)) {
    return name + " supports neither alignments, pins nor reserved ranges: choose exact.";
  }
  const auto windowed = [](const Gap& gap) { return gap.lower < gap.upper; };
  if ((solver.lacks & kWindows) != 0 &&
      std::any_of(problem.gaps.begin(), problem.gaps.end(), windowed)) {
    return name + " does not support windows: choose exact.";
  }
  if (!has_relations(problem)) return {};
  if ((solver.lacks & kRelations) != 0) {
    return name + " supports neither conflicts nor groups: choose exact.";
  }
  if (options.proof != nullptr) {
    return "a proof can speak neither of conflicts nor of groups.";
  }
  return {};
}

}  // namespace

const std::vector<Solver>& solvers() {
  static const std::vector<Solver> all = [] {
    std::vector<Solver> found;
    for (const Entry& each : kSolvers) found.push_back(each.is);
    return found;
  }();
  return all;
}

std::string try_solve(const Problem& problem, const SolveOptions& options, Plan* plan) {
  Stopper stopper(options.budget.seconds, options.interrupt);
  Sections sections;
  if (std::string fault = check_posed(problem, options, &sections); !fault.empty()) return fault;
  const std::optional<Entry> solver = entry_of(options);
  if (!solver) return unknown_solver(options.solver);
  if (std::string fault = unsupported(problem, options, solver->is); !fault.empty()) return fault;
  const std::optional<Problem> by_lifetimes =
      without_list(problem, options, solver->is, stopper, &sections);
  SolveOptions rest = options;
  rest.budget.seconds -= stopper.elapsed();
  if (stopper.interrupted()) rest.interrupt = [] { return true; };
  *plan = Run(by_lifetimes ? *by_lifetimes : problem, rest, *solver, std::move(sections)).run();
  // An interrupt is reported even where the answer needed no search.
  plan->stats.interrupted = plan->stats.interrupted || stopper.interrupted();
  return {};
}

Plan solve(const Problem& problem, const SolveOptions& options) {
  Plan plan;
  if (const std::string fault = try_solve(problem, options, &plan); !fault.empty()) fail(fault);
  return plan;
}

}  // namespace memplan
