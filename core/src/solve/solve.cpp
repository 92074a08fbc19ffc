#include "memplan/solve.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "memplan/linearise.h"
#include "solve/alone.h"
#include "solve/begin.h"
#include "solve/exact_search.h"
#include "solve/incumbent.h"
#include "solve/kernels.h"
#include "solve/last_resort.h"
#include "solve/prober.h"
#include "solve/proof.h"
#include "solve/round_robin.h"
#include "solve/search_and_prover.h"
#include "solve/somas.h"
#include "solve/windows.h"

namespace memplan {

namespace {

// What `auto` does with a problem of so many buffers (docs/benchmarks.md, "How auto chooses").
// Up to here a node of the search costs microseconds, and all of greedy is tried first.
constexpr BufferIdx kSmall = 500;
// Beyond, search and prover have no hope, and only windows can say more about the bound.
constexpr BufferIdx kSearchLimit = 10000;

// The share of the chain for large problems where others come after it, in nodes for each buffer.
// Where a dive of the search takes milliseconds, and does not end, it has the search for the
// fullest parts; of a small problem these would be nearly all.
constexpr std::int64_t kSmallChainNodes = 10;
constexpr std::int64_t kChainNodes = 100;
// With listed conflicts or groups, where the others are slow.
constexpr std::int64_t kRelatedNodes = 1000;

// The search of `auto` without a budget of the caller's: item visits, so that the time is about
// the same for any size of problem, and the answer repeats.
constexpr std::int64_t kAutoVisits = 100000000;

// Buffers in the first windows that are tried for a better bound. They widen from round to round
// up to half of the problem, and begin anew, with longer slices.
constexpr BufferIdx kFirstWidth = 24;

// That of telamalloc: the steps after which source 001 calls a problem unsolved (section 7.2).
constexpr std::int64_t kTelamallocSteps = 500000;

// The kernels that are tried at once, in buffers beyond those that attain the bound; and first a
// plan, in nodes for each buffer.
constexpr BufferIdx kKernelWidths[] = {20, 40};
constexpr std::int64_t kKernelLooks = 32'000'000;
constexpr std::int64_t kLooksPerNode = 10'000;  // later, for a node of the slice
constexpr std::int64_t kAnyPlanNodes = 2;

// What first fit may cost where it is made whatever the budget: work for each buffer, a few
// microseconds. Where hundreds are live at once, that does not always do.
constexpr std::int64_t kAnywaySteps = 1000;
// With so many live at once, even the first tries of first fit take seconds.
constexpr std::int64_t kCrowd = 1000;

constexpr const char* kMiniMalloc = "minimalloc";
constexpr const char* kTelamalloc = "telamalloc";

// One call of solve().
class Run {
 public:
  Run(const Problem& problem, const SolveOptions& options)
      : options_(options), incumbent_(problem, options) {}

  Plan run() {
    const std::string& solver = options_.solver;
    if (solver == "auto" && is_crowded() && !incumbent_.settled()) coalesce_anyway(incumbent_);
    begin(incumbent_, wants_plan());
    // With the clock run out there is nothing left to ask for but a plan.
    if (!incumbent_.settled() && !incumbent_.stopper().look()) {
      if (solver == "greedy") run_greedy(incumbent_);
      if (solver == "large") run_large(incumbent_.nodes_left());
      if (solver == "somas") run_somas(incumbent_);
      if (solver == "minimalloc") run_minimalloc();
      if (solver == "telamalloc") run_telamalloc();
      if (solver == "csp") run_csp();
      if (solver == "meta_csp") run_meta_csp();
      if (solver == "exact") run_exact({exact_search(incumbent_), true});
      if (solver == "prover") run_exact({nullptr, true});
      if (solver == "auto") run_auto();
    }
    if (solver != "somas" && lacks_plan(incumbent_)) run_last_resort();
    if (options_.proof != nullptr) write_proof(incumbent_, options_.proof);
    return incumbent_.finish(solver.c_str());
  }

 private:
  // In a search for a fit, the first plan is the last one.
  bool wants_plan() const {
    const std::string& solver = options_.solver;
    if (solver == "auto" || solver == "greedy" || solver == "large") return true;
    return solver != "somas" && !incumbent_.fit_only();
  }

  bool is_crowded() const {
    const Sections& sections = incumbent_.sections();
    if (incumbent_.problem().count() <= kSearchLimit || sections.count == 0) return false;
    std::int64_t live = 0;
    for (const Span& span : sections.spans) live += span.last - span.first + 1;
    return live / sections.count > kCrowd;
  }

  // First fit is better where it is cheap. Of many buffers, a pass may take minutes.
  void run_last_resort() {
    const BufferIdx count = incumbent_.problem().count();
    if (count <= kSearchLimit) first_fit_anyway(incumbent_, kAnywaySteps * count);
    coalesce_anyway(incumbent_);
  }

  void run_large(std::int64_t nodes) {
    const Incumbent::Lap lap(incumbent_, "large");
    LargeOptions chosen = options_.large;
    if (chosen.target == 0) chosen.target = incumbent_.target();
    Tracer trace;
    if (options_.trace) trace = [this](const Round& round) { incumbent_.trace(round); };
    Plan plan = large(
        incumbent_.problem(), incumbent_.sections(), chosen,
        std::min(nodes, incumbent_.nodes_left()), options_.seed, incumbent_.stopper(),
        [this](const Plan& better) { incumbent_.offer(better, "large"); }, trace);
    incumbent_.charge(plan.stats);
    // A part that was refuted on the way; whose buffers it has, the chain does not say.
    if (plan.lower_bound > incumbent_.lower_bound()) {
      std::vector<BufferIdx> all(incumbent_.problem().size.size());
      std::iota(all.begin(), all.end(), 0);
      incumbent_.refuted(plan.lower_bound - 1, std::move(all), "a part was refuted by search");
    }
    incumbent_.offer(std::move(plan), "large");
  }

  void run_minimalloc() {
    ask(kMiniMalloc, [this](Bytes capacity, std::int64_t nodes) {
      return minimalloc(incumbent_.problem(), incumbent_.sections(), capacity, options_.minimalloc,
                        nodes, incumbent_.stopper());
    });
  }

  // Probes with a search that starts from nothing at each limit.
  void ask(const char* name, const Prober::Search& search) {
    if (incumbent_.fit_only()) {  // in one go
      const Incumbent::Lap lap(incumbent_, name);
      const Bytes capacity = incumbent_.capacity();
      const std::int64_t nodes = incumbent_.nodes_left();
      incumbent_.learn(capacity, nodes, search(capacity, nodes), name);
      return;
    }
    // A search for the least peak wants a first plan: without it, it would not know how far the
    // bound may be from the truth.
    run_greedy(incumbent_);
    probe_in_rounds(incumbent_, search, name);
  }

  void run_telamalloc() {
    // Its search proves next to nothing, so that it would go on for ever where nothing fits.
    const std::int64_t steps = kTelamallocSteps + incumbent_.problem().count();
    if (open_ended(steps)) incumbent_.limit_nodes(steps);
    ask(kTelamalloc, [this](Bytes capacity, std::int64_t nodes) {
      return telamalloc(incumbent_.problem(), incumbent_.sections(), capacity, options_.telamalloc,
                        nodes, incumbent_.stopper());
    });
  }

  void run_csp() {
    ask("csp", [this](Bytes capacity, std::int64_t nodes) {
      return csp(incumbent_.problem(), incumbent_.sections(), capacity, options_.csp, nodes,
                 incumbent_.stopper());
    });
  }

  void run_meta_csp() {
    ask("meta_csp", [this](Bytes capacity, std::int64_t nodes) {
      return meta_csp(incumbent_.problem(), incumbent_.sections(), capacity, options_.meta_csp,
                      nodes, incumbent_.stopper());
    });
  }

  // Whether the caller gave no budget to speak of, where ours would be so many nodes.
  bool open_ended(std::int64_t nodes) const {
    return options_.budget.seconds > 1e17 && options_.budget.nodes > nodes;
  }

  void run_exact(SearchAndProver::Engines engines) {
    if (!incumbent_.fit_only()) run_greedy(incumbent_);
    run_rounds(std::move(engines));
  }

  void run_auto() {
    const BufferIdx count = incumbent_.problem().count();
    const bool related = has_relations(incumbent_.problem());
    const bool small = count <= kSmall;
    // Where a pass of the chain takes seconds, there is a plan before.
    if (count > kSearchLimit && !incumbent_.has_plan()) coalesce_anyway(incumbent_);
    if (incumbent_.settled()) return;
    if (small && !incumbent_.problem().hint.empty()) run_greedy(incumbent_);
    if (related && !incumbent_.settled()) run_kernels();
    if (!incumbent_.settled()) {
      const std::int64_t share = related ? kRelatedNodes : small ? kSmallChainNodes : kChainNodes;
      run_large(count > kSearchLimit ? incumbent_.nodes_left() : share * count);
    }
    if (small && !incumbent_.settled()) run_greedy(incumbent_);
    if (incumbent_.settled()) return;
    if (open_ended(kAutoVisits)) incumbent_.limit_nodes(kAutoVisits / count);
    if (count <= kSearchLimit) {
      run_rounds({exact_search(incumbent_), true});
    } else {
      run_rounds({nullptr, false});
    }
  }

  // Small kernels first: a plan at a bound that is out of reach would be sought in vain.
  void run_kernels() {
    Kernels kernels(incumbent_);
    run_large(kAnyPlanNodes * incumbent_.problem().count());
    for (const BufferIdx width : kKernelWidths) {
      const Bytes target = incumbent_.target();
      {
        const Incumbent::Lap lap(incumbent_, "kernels");
        if (incumbent_.settled() || !kernels.round(width, kKernelLooks)) return;
      }
      if (!incumbent_.settled() && incumbent_.target() > target) run_skyline_wheel(incumbent_);
    }
  }

  // Rounds of the engines, and of windows.
  void run_rounds(SearchAndProver::Engines engines) {
    SearchAndProver both(incumbent_, std::move(engines));
    Kernels kernels(incumbent_);
    Windows windows(incumbent_);
    BufferIdx width = kFirstWidth;
    round_robin(incumbent_, [&](std::int64_t slice) {
      const bool more = both.round(slice);
      if (incumbent_.settled()) return more;
      const bool related = has_relations(incumbent_.problem());
      const Incumbent::Lap lap(incumbent_, related ? "kernels" : "windows");
      const bool tried =
          related ? kernels.round(width, slice * kLooksPerNode) : windows.round(width, slice);
      width = tried ? width + width / 2 : kFirstWidth;
      return more || tried;
    });
  }

  const SolveOptions& options_;
  Incumbent incumbent_;
};

// The same problem with its listed conflicts said by lifetimes, if they can: then the search, and
// all bounds that come of sections, are for it as well.
std::optional<Problem> without_list(const Problem& problem, const SolveOptions& options,
                                    Stopper& stopper) {
  const std::string& solver = options.solver;
  const bool complete = solver == "auto" || solver == "exact" || solver == "prover";
  if (!complete || problem.conflicts.empty() || !problem.group.empty()) return std::nullopt;
  // A few per cent of the time there is. A buffer costs as much as a pair.
  constexpr double kPairsPerSecond = 500'000;
  const auto most_pairs = static_cast<std::int64_t>(std::min(
      static_cast<double>(kMostPairsToLinearise), options.budget.seconds * kPairsPerSecond));
  if (problem.count() > most_pairs) return std::nullopt;
  std::optional<Problem> result = linearised(problem, stopper, most_pairs);
  // All that conflict with each other may be more than 2^62 bytes, where no time had so many.
  return result && check(*result).empty() ? std::move(result) : std::nullopt;
}

// Those that do not keep every constraint say so here.
constexpr struct {
  const char* name;
  bool windows;
  bool relations;  // conflicts and groups
} kSolvers[] = {
    {"auto", true, true},         {"greedy", true, true}, {"minimalloc", true, false},
    {"telamalloc", false, false}, {"exact", true, true},  {"prover", false, true},
    {"large", true, true},        {"somas", true, true},  {"csp", false, false},
    {"meta_csp", false, false},
};

void refuse_what_it_lacks(const Problem& problem, const SolveOptions& options) {
  const std::string& solver = options.solver;
  const auto known = std::find_if(std::begin(kSolvers), std::end(kSolvers),
                                  [&solver](const auto& each) { return solver == each.name; });
  if (known == std::end(kSolvers)) {
    std::string names;
    for (const auto& each : kSolvers) names += std::string(names.empty() ? "" : ", ") + each.name;
    throw std::invalid_argument("there is no solver '" + solver + "': choose one of " + names +
                                ".");
  }
  const auto windowed = [](const Gap& gap) { return gap.lower < gap.upper; };
  if (!known->windows && std::any_of(problem.gaps.begin(), problem.gaps.end(), windowed)) {
    throw std::invalid_argument(solver + " does not support windows: choose exact.");
  }
  if (!has_relations(problem)) return;
  if (!known->relations) {
    throw std::invalid_argument(solver + " supports neither conflicts nor groups: choose exact.");
  }
  if (options.proof != nullptr) {
    throw std::invalid_argument("a proof can speak neither of conflicts nor of groups.");
  }
}

}  // namespace

Plan solve(const Problem& problem, const SolveOptions& options) {
  Stopper stopper(options.budget.seconds, options.interrupt);
  require_well_posed(problem, options);
  refuse_what_it_lacks(problem, options);
  const std::optional<Problem> by_lifetimes = without_list(problem, options, stopper);
  SolveOptions rest = options;
  rest.budget.seconds -= stopper.elapsed();
  if (stopper.interrupted()) rest.interrupt = [] { return true; };
  Plan plan = Run(by_lifetimes ? *by_lifetimes : problem, rest).run();
  // Said even where the answer needed no search.
  plan.stats.interrupted = plan.stats.interrupted || stopper.interrupted();
  return plan;
}

}  // namespace memplan
