#include "memplan/solve.h"

#include <algorithm>
#include <stdexcept>

#include "memplan/bounds.h"
#include "memplan/sections.h"

namespace memplan {

namespace {

// Greedy before search: `auto` does not search above this many buffers, where one node costs
// milliseconds and a dive does not end (docs/algorithms.md, "Limits").
constexpr BufferIdx kSearchLimit = 10000;

// The search of `auto` without a budget of the caller's: item visits, so that the time is about
// the same for any size of problem, and the answer repeats.
constexpr std::int64_t kAutoVisits = 100000000;

// The first slice of a search for the least peak, in nodes; it doubles from round to round.
constexpr std::int64_t kFirstSlice = 2000;

// One call of solve(): the problem, what is known of its optimum, and the best plan so far.
class Run {
 public:
  Run(const Problem& problem, const SolveOptions& options)
      : problem_(problem),
        options_(options),
        stopper_(options.budget.seconds, options.interrupt),
        nodes_left_(options.budget.nodes) {
    const Lap lap(*this, "sweep");
    sections_ = sweep(problem);
    const Bound bound = lower_bound(problem, sections_);
    best_.lower_bound = bound.bytes;
    worst_ = bound.section;
    best_.stats.note = std::string("bound: ") + bound.rule;
  }

  Plan run() {
    if (proved_too_small()) return finish("bounds");
    if (options_.solver == "greedy") {
      run_greedy();
      return finish("greedy");
    }
    // A search for the least peak wants a first plan: without it, it would not know how far the
    // bound may be from the truth.
    if (options_.solver == "auto" || !fit_only()) run_greedy();
    if (options_.solver == "minimalloc") {
      search([this](Bytes capacity, std::int64_t nodes) {
        const Lap lap(*this, "minimalloc");
        return minimalloc(problem_, sections_, capacity, options_.minimalloc, nodes, stopper_);
      });
      return finish("minimalloc");
    }
    const auto exact = [this](Bytes capacity, std::int64_t nodes) {
      const Lap lap(*this, "exact");
      return exact_fit(problem_, sections_, capacity, options_.exact, nodes, options_.threads,
                       options_.seed, stopper_);
    };
    if (options_.solver == "exact") {
      search(exact);
      return finish("exact");
    }
    if (settled()) return finish("greedy");
    if (problem_.count() > kSearchLimit) {
      best_.stats.note = "too many buffers for the search; " + best_.stats.note;
      return finish("greedy");
    }
    const bool open_ended = options_.budget.seconds > 1e17 && options_.budget.nodes > kAutoVisits;
    if (open_ended) nodes_left_ = kAutoVisits / std::max<BufferIdx>(1, problem_.count());
    search(exact);
    return finish("auto");
  }

 private:
  // Adds the time until it goes out of scope to a phase of the statistics.
  class Lap {
   public:
    Lap(Run& run, const char* phase) : run_(run), phase_(phase), begin_(run.stopper_.elapsed()) {}
    ~Lap() {
      auto& seconds = run_.best_.stats.seconds;
      const auto same = [&](const auto& entry) { return entry.first == phase_; };
      auto at = std::find_if(seconds.begin(), seconds.end(), same);
      if (at == seconds.end()) at = seconds.insert(seconds.end(), {phase_, 0.0});
      at->second += run_.stopper_.elapsed() - begin_;
    }
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;

   private:
    Run& run_;
    const char* phase_;
    double begin_;
  };

  bool fit_only() const { return options_.objective == Objective::kFit; }
  Bytes capacity() const { return problem_.capacity.value_or(kMaxBytes); }

  bool proved_too_small() {
    if (best_.lower_bound <= capacity()) return false;
    best_.status = Status::kInfeasible;
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      for (auto k = sections_.span_begin[b]; k < sections_.span_begin[b + 1]; ++k) {
        const Span& span = sections_.spans[k];
        if (span.first <= worst_ && worst_ <= span.last) best_.conflict.push_back(b);
      }
    }
    return true;
  }

  // Nothing left to do: a fit was asked and is there, or no plan can be better.
  bool settled() const {
    if (best_.status == Status::kInfeasible) return true;
    if (!best_.has_offsets()) return false;
    return fit_only() || best_.peak <= best_.lower_bound;
  }

  bool out_of_budget() { return nodes_left_ <= 0 || stopper_.look(); }

  void run_greedy() {
    const Lap lap(*this, "greedy");
    GreedyOptions greedy_options = options_.greedy;
    if (greedy_options.target == 0) {
      greedy_options.target = fit_only() ? capacity() : best_.lower_bound;
    }
    take(greedy(problem_, sections_, greedy_options, nodes_left_, stopper_), "greedy");
  }

  // Keeps a plan if it is better than the best so far, and counts what it cost.
  void take(Plan found, const char* solver) {
    best_.stats.nodes += found.stats.nodes;
    best_.stats.restarts += found.stats.restarts;
    if (!found.has_offsets() || (best_.has_offsets() && found.peak >= best_.peak)) return;
    best_.status = Status::kFeasible;
    best_.offsets = std::move(found.offsets);
    best_.peak = found.peak;
    best_.stats.solver = solver;
    best_.stats.note = found.stats.note;
  }

  template <typename Fit>
  void search(Fit fit) {
    if (fit_only()) {
      probe(fit, capacity(), nodes_left_);
    } else {
      minimise(fit);
    }
  }

  // Asks for a plan within `limit`. Either answer narrows what is known.
  template <typename Fit>
  Status probe(Fit fit, Bytes limit, std::int64_t nodes) {
    Plan found = fit(limit, nodes);
    const Status status = found.status;
    nodes_left_ -= std::max<std::int64_t>(1, found.stats.nodes);
    if (status == Status::kInfeasible) {
      best_.stats.note = found.stats.note;
      best_.lower_bound =
          std::max(best_.lower_bound, next_reachable_peak(problem_, sections_, limit + 1));
      if (limit >= capacity()) {
        best_.status = Status::kInfeasible;
        best_.conflict = std::move(found.conflict);
      }
    } else if (status == Status::kUnknown && !best_.has_offsets()) {
      best_.stats.note = found.stats.note;
    }
    take(std::move(found), options_.solver == "minimalloc" ? "minimalloc" : "exact");
    return status;
  }

  // Least peak by probes between the bound and the best plan. The bound itself comes first: it
  // is the optimum more often than not, and then its plan is its own proof. Refuted, it rises in
  // steps that double, since the optimum may be any number of bytes away. Where a probe runs out
  // of its slice, easier limits are tried, a half nearer to the best plan each; when the rounds
  // come back to the bound, slices have doubled.
  template <typename Fit>
  void minimise(Fit fit) {
    std::int64_t slice = kFirstSlice + 4 * static_cast<std::int64_t>(problem_.count());
    Bytes stride = 0;  // from the bound to the next probe
    while (!settled() && !out_of_budget()) {
      Bytes limit = best_.lower_bound;
      bool cut_short = false;  // some probe of this round would go on with more nodes
      while (!settled() && !out_of_budget()) {
        const Bytes top = best_.has_offsets() ? best_.peak - 1 : capacity();
        limit = std::min(std::max(limit, best_.lower_bound), top);
        const std::int64_t nodes_before = best_.stats.nodes;
        const Status status = probe(fit, limit, std::min(slice, nodes_left_));
        if (status != Status::kUnknown) {
          stride = status == Status::kInfeasible ? std::max<Bytes>(1, 2 * stride) : stride / 4;
          stride = std::min(stride, (top - std::min(top, best_.lower_bound)) / 2);
          limit = best_.lower_bound + stride;
          cut_short = true;
          continue;
        }
        cut_short = cut_short || best_.stats.nodes - nodes_before >= slice / 2;
        if (limit >= top) break;
        limit += std::max<Bytes>(1, (top - limit + 1) / 2);
      }
      if (!cut_short) return;  // the solver gives up on this kind of problem, whatever the budget
      slice = std::min<std::int64_t>(2 * slice, std::int64_t{1} << 60);
    }
  }

  Plan finish(const char* solver) {
    if (best_.stats.solver.empty()) best_.stats.solver = solver;
    if (best_.status == Status::kFeasible && settled()) best_.status = Status::kOptimal;
    if (!best_.has_offsets()) best_.peak = 0;
    best_.stats.interrupted = stopper_.interrupted();
    return std::move(best_);
  }

  const Problem& problem_;
  const SolveOptions& options_;
  Stopper stopper_;
  std::int64_t nodes_left_;
  Sections sections_;
  SectionIdx worst_ = -1;  // where the lower bound is attained
  Plan best_;
};

}  // namespace

Plan solve(const Problem& problem, const SolveOptions& options) {
  if (const std::string fault = memplan::check(problem); !fault.empty()) {
    throw std::invalid_argument(fault);
  }
  const std::string& solver = options.solver;
  if (solver != "auto" && solver != "greedy" && solver != "minimalloc" && solver != "exact") {
    throw std::invalid_argument("there is no solver '" + solver +
                                "': choose auto, greedy, minimalloc or exact.");
  }
  if (options.objective == Objective::kFit && !problem.capacity) {
    throw std::invalid_argument("a fit needs a capacity to fit in.");
  }
  return Run(problem, options).run();
}

}  // namespace memplan
