// What is known while a problem is solved: the best plan, the bound, and what is left to spend.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "memplan/bounds.h"
#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/sections.h"
#include "memplan/solve.h"

namespace memplan {

class Incumbent {
 public:
  // Starts from the bound of lifetimes. The problem, whose sections it takes, and the options must
  // outlive it.
  Incumbent(const Problem& problem, const SolveOptions& options, Sections sections);
  Incumbent(const Problem& problem, const SolveOptions& options)
      : Incumbent(problem, options, sweep(problem)) {}

  const Problem& problem() const { return problem_; }
  const SolveOptions& options() const { return options_; }
  const Sections& sections() const { return sections_; }
  Stopper& stopper() { return stopper_; }

  // Raises the bound by a rule that needs no search.
  void raise(const Bound& bound);

  bool has_plan() const { return best_.has_offsets(); }
  const std::vector<Bytes>& offsets() const { return best_.offsets; }
  Bytes peak() const { return best_.peak; }
  Bytes lower_bound() const { return best_.lower_bound; }
  // Rows that do not fit below the bound; empty where no engine named them.
  const std::vector<BufferIdx>& conflict() const { return conflict_; }
  bool fit_only() const { return options_.objective == Objective::kFit; }
  Bytes capacity() const { return problem_.capacity.value_or(kMaxBytes); }
  // The greatest peak that would improve on what is known.
  Bytes top() const { return has_plan() ? best_.peak - 1 : capacity(); }
  // Limits between two multiples of this ask the same question as the lower one. 1 before
  // find_unit(), which a program is linked with only where it calls it.
  Bytes unit() const { return unit_; }
  void find_unit() { unit_ = unit_of_peaks(problem_, sections_); }
  // A plan at or below this settles the question.
  Bytes target() const { return fit_only() ? capacity() : best_.lower_bound; }

  // Whether a fit was asked, and a plan may be lower than the capacity.
  bool has_room() const { return fit_only() && lower_bound() < capacity(); }
  // Where passes over all buffers begin. A fit with nodes for few of them takes the way of the
  // least peak, to be no worse: a pass fails at the bound after few nodes, and at the capacity
  // often after all.
  Bytes first_target() const {
    return nodes_left_ > kManyPasses * problem_.count() ? target() : lower_bound();
  }

  // Whether the question is answered: a fit was asked and is found, or no plan can be better.
  bool settled() const;
  bool out_of_budget() { return nodes_left_ <= 0 || stopper_.look(); }
  bool is_open() { return !settled() && !out_of_budget(); }
  std::int64_t nodes_left() const { return nodes_left_; }
  void limit_nodes(std::int64_t nodes) { nodes_left_ = std::min(nodes_left_, nodes); }

  // Adds what an attempt cost to the statistics and takes it from the budget.
  void charge(const Stats& stats);
  // Hands a round to the caller's tracer, with what is known now.
  void trace(Round round);
  // Keeps a plan if it is better than the best so far.
  void offer(Plan found, const char* solver);
  // Records that no plan has a peak of at most `limit`. `conflict` is an infeasible subset of the
  // rows, or empty where none is known.
  void refuted(Bytes limit, std::vector<BufferIdx> conflict, const std::string& note);
  // charge(), then offer() or refuted(), by the status of the answer to "within `limit`?", for
  // which it had so many nodes; and trace().
  Status learn(Bytes limit, std::int64_t nodes, Plan answer, const char* solver);
  // charge(), offer() and trace() for the plan of an engine that proves nothing.
  void take(Bytes target, std::int64_t nodes, Plan found, const char* solver, const char* stage);
  // Sets the note of the statistics.
  void note(const std::string& text) { best_.stats.note = text; }
  const std::string& note() const { return best_.stats.note; }

  // The best plan is one of this problem, within the capacity and not below the bound; where it is
  // refuted, there is none.
  bool check_invariants() const;

  // Adds the time until it goes out of scope to a phase of the statistics, and names the phase in
  // the progress.
  class Lap {
   public:
    Lap(Incumbent& incumbent, const char* phase);
    ~Lap();
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;

   private:
    Incumbent& incumbent_;
    const char* phase_;
    const char* outer_;
    double begin_;
  };

  // Gives the answer, to be called once. `solver` is named in it where no engine made a plan.
  Plan finish(const char* solver);

 private:
  static constexpr std::int64_t kManyPasses = 8;

  void know(const Bound& bound);
  bool look_up();
  void report();
  Round round_of(Bytes target, std::int64_t nodes, const Plan& answer, const char* engine,
                 const char* stage) const;

  const Problem& problem_;
  const SolveOptions& options_;
  Stopper stopper_;
  std::int64_t nodes_left_;
  Sections sections_;
  Plan best_;
  std::vector<BufferIdx> conflict_;
  Bytes unit_ = 1;
  const char* phase_ = "";
  double reported_ = 0;  // seconds since the start
};

}  // namespace memplan
