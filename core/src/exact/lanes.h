// Restarts of the search over a portfolio of strategies, on one component.
//
// A lane is a sequence of runs that share nogoods with each other and nothing with other lanes.
// Lanes are served in rounds, one slice of nodes each; the answer of a round is that of its first
// lane that has one. So threads, which run the lanes of a round side by side, cannot change it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exact/any_search.h"
#include "exact/kinds.h"
#include "exact/task.h"
#include "memplan/exact.h"

namespace memplan::exact {

struct Answer {
  Verdict verdict = Verdict::kBudget;
  std::vector<Bytes> offsets;     // by item of the task's world, bytes; only this task's are set
  std::vector<ItemIdx> conflict;  // items of the world
  std::int64_t nodes = 0;  // of this run, and the lanes that count: up to the one that answered
  std::int64_t restarts = 0;
};

// One component. A second call of run() goes on where the first one stopped.
class Lanes {
 public:
  // `task` must outlive it.
  Lanes(const Task& task, const ExactOptions& options, std::uint64_t seed, const Kinds& kinds);
  ~Lanes();

  // Serves rounds until one lane answers or `node_budget` is allotted.
  Answer run(std::int64_t node_budget, int threads, Stopper& stopper);

 private:
  class Lane;

  // The lanes of a round on up to `threads` threads; the first lane with an answer, or -1.
  int run_round(const std::vector<std::int64_t>& slices, int threads, Stopper& stopper);

  std::vector<std::unique_ptr<Lane>> lanes_;
  int round_ = 0;
};

}  // namespace memplan::exact
