#include "memplan/solve.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "memplan/sections.h"
#include "solve/incumbent.h"
#include "solve/proof.h"
#include "solve/together.h"
#include "solve/windows.h"

namespace memplan {

namespace {

// What `auto` does with a problem of so many buffers (docs/benchmarks.md, "How auto chooses").
// Up to here a node costs microseconds: greedy, then search and prover.
constexpr BufferIdx kSmall = 500;
// Above, a dive of the search takes milliseconds, and does not end: the chain for large problems,
// which has the search for their fullest parts, goes first. Up to here, search and prover come
// after it; beyond, only windows can say more about the bound.
constexpr BufferIdx kSearchLimit = 10000;

// The chain's share where others come after it: in nodes for each buffer, at least so many.
constexpr std::int64_t kChainNodes = 100;

// The search of `auto` without a budget of the caller's: item visits, so that the time is about
// the same for any size of problem, and the answer repeats.
constexpr std::int64_t kAutoVisits = 100000000;

// The first slice, in nodes of the search; slices double from round to round.
constexpr std::int64_t kFirstSlice = 2000;
constexpr std::int64_t kNodesPerBuffer = 4;

// Buffers in the first windows that are tried for a better bound. They widen from round to round
// up to half of the problem, and begin anew, with longer slices.
constexpr BufferIdx kFirstWidth = 24;

constexpr const char* kMiniMalloc = "minimalloc";

// One call of solve().
class Run {
 public:
  Run(const Problem& problem, const SolveOptions& options)
      : options_(options), incumbent_(problem, options) {}

  Plan run() {
    const std::string& solver = options_.solver;
    if (!incumbent_.settled()) {
      if (solver == "greedy") run_greedy();
      if (solver == "large") run_large(incumbent_.nodes_left());
      if (solver == "minimalloc") run_minimalloc();
      if (solver == "exact") run_exact({exact_search(incumbent_), "exact", true});
      if (solver == "prover") run_exact({nullptr, "", true});
      if (solver == "auto") run_auto();
    }
    if (options_.proof != nullptr) write_proof(incumbent_, options_.proof);
    return incumbent_.finish(solver.c_str());
  }

 private:
  void run_greedy() {
    const Incumbent::Lap lap(incumbent_, "greedy");
    GreedyOptions chosen = options_.greedy;
    if (chosen.target == 0) chosen.target = target();
    Plan plan = greedy(incumbent_.problem(), incumbent_.sections(), chosen, incumbent_.nodes_left(),
                       incumbent_.stopper());
    incumbent_.charge(plan.stats);
    incumbent_.offer(std::move(plan), "greedy");
  }

  void run_large(std::int64_t nodes) {
    const Incumbent::Lap lap(incumbent_, "large");
    LargeOptions chosen = options_.large;
    if (chosen.target == 0) chosen.target = target();
    Plan plan = large(incumbent_.problem(), incumbent_.sections(), chosen,
                      std::min(nodes, incumbent_.nodes_left()), options_.seed, incumbent_.stopper(),
                      [this](const Plan& better) { incumbent_.offer(better, "large"); });
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
    const auto search = [this](Bytes capacity, std::int64_t nodes) {
      return minimalloc(incumbent_.problem(), incumbent_.sections(), capacity, options_.minimalloc,
                        nodes, incumbent_.stopper());
    };
    if (incumbent_.fit_only()) {  // in one go: it begins anew when it is asked again
      const Incumbent::Lap lap(incumbent_, kMiniMalloc);
      const Bytes capacity = incumbent_.capacity();
      incumbent_.learn(capacity, search(capacity, incumbent_.nodes_left()), kMiniMalloc);
      return;
    }
    // A search for the least peak wants a first plan: without it, it would not know how far the
    // bound may be from the truth.
    run_greedy();
    run_rounds({search, kMiniMalloc, false}, false);
  }

  void run_exact(Together::Engines engines) {
    if (!incumbent_.fit_only()) run_greedy();
    run_rounds(std::move(engines), true);
  }

  void run_auto() {
    const BufferIdx count = incumbent_.problem().count();
    const bool open_ended = options_.budget.seconds > 1e17 && options_.budget.nodes > kAutoVisits;
    if (count <= kSmall) {
      run_greedy();
    } else {
      run_large(count <= kSearchLimit ? kChainNodes * count : incumbent_.nodes_left());
    }
    if (incumbent_.settled()) return;
    if (open_ended) incumbent_.limit_nodes(kAutoVisits / count);
    if (count <= kSearchLimit) {
      run_rounds({exact_search(incumbent_), "exact", true}, true);
    } else {
      run_rounds({nullptr, "", false}, true);
    }
  }

  // Rounds of the engines, and of windows, until the question is settled or the budget is spent.
  void run_rounds(Together::Engines engines, bool with_windows) {
    Together together(incumbent_, std::move(engines));
    Windows windows(incumbent_);
    std::int64_t slice =
        kFirstSlice + kNodesPerBuffer * static_cast<std::int64_t>(incumbent_.problem().count());
    BufferIdx width = kFirstWidth;
    while (!incumbent_.settled() && !incumbent_.out_of_budget()) {
      bool more = together.round(slice);
      if (with_windows && !incumbent_.settled()) {
        const Incumbent::Lap lap(incumbent_, "windows");
        if (windows.round(width, slice)) {
          width += width / 2;
          more = true;
        } else {
          width = kFirstWidth;
        }
      }
      if (!more) return;  // they give up on this kind of problem, whatever the budget
      slice = std::min<std::int64_t>(2 * slice, std::int64_t{1} << 60);
    }
  }

  Bytes target() const {
    return incumbent_.fit_only() ? incumbent_.capacity() : incumbent_.lower_bound();
  }

  const SolveOptions& options_;
  Incumbent incumbent_;
};

}  // namespace

Plan solve(const Problem& problem, const SolveOptions& options) {
  if (const std::string fault = memplan::check(problem); !fault.empty()) {
    throw std::invalid_argument(fault);
  }
  constexpr const char* kSolvers[] = {"auto", "greedy", "minimalloc", "exact", "prover", "large"};
  if (std::find(std::begin(kSolvers), std::end(kSolvers), options.solver) == std::end(kSolvers)) {
    throw std::invalid_argument("there is no solver '" + options.solver +
                                "': choose auto, greedy, minimalloc, exact, prover or large.");
  }
  if (options.objective == Objective::kFit && !problem.capacity) {
    throw std::invalid_argument("a fit needs a capacity to fit in.");
  }
  const auto windowed = [](const Gap& gap) { return gap.lower < gap.upper; };
  if (options.solver == "prover" &&
      std::any_of(problem.gaps.begin(), problem.gaps.end(), windowed)) {
    throw std::invalid_argument("prover does not support windows: choose exact.");
  }
  return Run(problem, options).run();
}

}  // namespace memplan
