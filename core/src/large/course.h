// The state that the chains for large problems share: the best plan so far, the target, and the
// budget that is left.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "greedy/best_pass.h"
#include "greedy/orders.h"
#include "greedy/passes.h"
#include "greedy/short_lists.h"
#include "memplan/budget.h"
#include "memplan/large.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/round.h"
#include "memplan/sections.h"

namespace memplan::chain {

constexpr Bytes kFinest = 10'000;  // steps to a target: no goal is closer to the peak than one

// A round asks for a plan at or below its goal, which is at or above the target. A pass is given up
// when it cannot end below the best plan so far.
class Course {
 public:
  // All must outlive it.
  Course(const Problem& problem, const Sections& sections, const LargeOptions& options,
         std::int64_t node_budget, Stopper& stopper,
         const std::function<void(const Plan&)>& improved, const Tracer& trace);

  const Problem& problem;
  const Sections& sections;
  const LargeOptions& options;
  Stopper& stopper;
  Profile profile;

  Plan plan;                // the best
  Bytes target = 0;         // no plan is better; rises where a core is refuted
  Bytes goal = 0;           // of this round
  Bytes limit = kMaxBytes;  // the capacity
  std::int64_t nodes_left;
  std::int64_t patience = kPatience;  // a pass is given up at so many times the work of the fastest

  // A plan at or below this ends the search.
  Bytes wanted() const { return options.fit ? limit : target; }
  // Whether to stop: no better plan is wanted or can be, or the budget is spent.
  bool enough() { return reached(wanted()) || target > limit || nodes_left <= 0 || stopper.look(); }
  bool reached(Bytes peak) const { return plan.has_offsets() && plan.peak <= peak; }
  bool round_over() { return reached(goal) || target > goal || enough(); }

  // Sorts by an order, given by its name in orders().
  std::vector<BufferIdx> order(const std::string& name);

  // At the end of a round: spends its nodes, and traces it. `status` answers whether there is a
  // plan below the goal. `otherwise` says what ended the round where neither that nor the stopper
  // did.
  void spend(const char* stage, std::int64_t nodes, Status status, const char* otherwise = "end");

  // Runs one pass below the goal, and keeps its plan if it is better than the best so far.
  Packing pass(const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed, Fit fit,
               const std::string& note);

  // Runs one pass without a goal: given up as soon as it cannot be better than the best plan.
  void open_pass(const std::vector<BufferIdx>& order, Fit fit, const std::string& note);
  // The same for the pass on the skyline.
  void skyline_pass(const std::vector<BufferIdx>& order, const std::string& note);

  // Keeps a plan if it is better.
  void take(const std::vector<Bytes>& offsets, Bytes peak, const std::string& note);

  // The blocks of buffers that move together, and the steps of the fastest pass of first fit.
  const Blocks& blocks() const { return passes_.blocks(); }
  std::int64_t fastest() const { return fastest_; }

 private:
  // The greatest peak that is worth keeping. For a fit, a plan above the capacity is one to lower.
  Bytes top() const {
    if (plan.has_offsets()) return plan.peak - 1;
    return options.fit ? kMaxBytes : limit;
  }
  Limits limits_below_best(std::int64_t steps) const;
  void take_open(const Draft& draft, const std::string& note);

  const std::function<void(const Plan&)>& improved_;
  const Tracer& trace_;
  Passes passes_;
  std::optional<ShortLists> lists_;  // for first fit, where they suit
  std::int64_t fastest_ = kNoLimit;
  std::int64_t fastest_best_fit_ = kNoLimit;
};

}  // namespace memplan::chain
