// The search and the prover, side by side on one problem (docs/algorithms.md, "Together").
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "prover/prover.h"
#include "solve/incumbent.h"

namespace memplan {

// The search asks from below: is there a plan at the bound? The prover asks from above: is there a
// better one? They share two integers, the best peak and the bound, and are served in rounds of
// slices that are allotted beforehand. So two threads, one for each, give the answer of one.
class Together {
 public:
  // Is there a plan with a peak of at most `limit`? Asked again for the same limit, a search may go
  // on where it was.
  using Search = std::function<Plan(Bytes limit, std::int64_t nodes)>;

  struct Engines {
    Search search;          // may be empty
    const char* name = "";  // of the search
    bool prover = true;
  };

  Together(Incumbent& incumbent, Engines engines);

  // With `slice` nodes for a question to the search, and about as much time for the prover. False
  // where neither used most of it: more would not help.
  bool round(std::int64_t slice);

 private:
  // What one slice of the prover came to: the last plan on its way down, and the proof below it.
  struct Descent {
    Plan plan;
    Plan refutation;
    Bytes refuted = -1;
    Stats cost;
    bool cut_short = false;  // it would go on
  };

  bool from_below(std::int64_t slice, std::int64_t nodes);
  bool halve(std::int64_t slice);
  Status ask(Bytes limit, std::int64_t nodes);
  Descent descend(Bytes limit, std::int64_t conflicts, std::int64_t steps, Stopper* stopper,
                  const std::atomic<bool>* cancel);
  void learn(Descent descent);
  void prepare_prover(Bytes limit);
  std::int64_t steps_of(std::int64_t slice) const;

  Incumbent& incumbent_;
  Engines engines_;
  std::unique_ptr<prover::Prover> prover_;
  Bytes suggested_ = 0;  // the peak of the plan that the prover has been told of
  Bytes stride_ = 0;     // from the bound to the next question of the search
};

// The exact search as one that goes on where it was.
Together::Search exact_search(Incumbent& incumbent);

}  // namespace memplan
