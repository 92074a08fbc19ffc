// Restarts the search over a portfolio of strategies, on one component.
//
// A worker makes a sequence of runs that share nogoods with each other and nothing with other
// workers. Workers are served round-robin, one slice of nodes each; the answer of a round is that
// of its first worker which has one. So the answer does not depend on the number of threads, which
// run the workers of a round side by side.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exact/any_search.h"
#include "exact/search_makers.h"
#include "exact/task.h"
#include "memplan/exact.h"

namespace memplan::exact {

struct Answer {
  Verdict verdict = Verdict::kBudget;
  std::vector<Bytes> offsets;     // by item of the task's world, bytes; only this task's are set
  std::vector<ItemIdx> conflict;  // items of the world
  std::int64_t nodes = 0;         // of this run, and of the workers up to the one that answered
  std::int64_t restarts = 0;
};

// The nodes of a dive in the first round. Later ones are longer.
inline std::int64_t first_dive(ItemIdx items) { return 100 + 3 * std::int64_t{items} / 2; }

// The workers on one component. A second call of run() resumes where the first one stopped.
class Portfolio {
 public:
  // `task` must outlive it.
  Portfolio(const Task& task, const ExactOptions& options, std::uint64_t seed,
            const SearchMakers& makers);
  ~Portfolio();

  // Serves rounds until one worker answers or `node_budget` is allotted.
  Answer run(std::int64_t node_budget, int threads, Stopper& stopper);

 private:
  class Worker;

  // Runs the workers of a round on up to `threads` threads. Returns the first with an answer, or
  // -1.
  int run_on_threads(const std::vector<std::int64_t>& slices, int threads, Stopper& stopper);

  std::vector<std::unique_ptr<Worker>> workers_;
  int round_ = 0;
  int next_ = 0;  // the first worker that has not had its dive in this round
};

}  // namespace memplan::exact
