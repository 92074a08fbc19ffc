// The search and the prover, side by side on one problem (docs/algorithms.md, "Together").
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "prover/prover.h"
#include "solve/incumbent.h"
#include "solve/questions.h"

namespace memplan {

// The search asks from below: is there a plan at the bound? The prover asks from above: is there a
// better one? They share two integers, the best peak and the bound, and are served in rounds of
// slices that are allotted beforehand. So two threads, one for each, give the answer of one.
class Together {
 public:
  struct Engines {
    Questions::Search search;  // may be empty
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
    std::vector<std::pair<Status, Round>> rounds;  // `ended_by` where there is no answer
    bool cut_short = false;                        // it would go on
  };

  Descent descend(Bytes limit, std::int64_t conflicts, std::int64_t steps, Stopper* stopper,
                  const std::atomic<bool>* cancel);
  void learn(Descent descent);
  void prepare_prover(Bytes limit);
  std::int64_t steps_of(std::int64_t slice) const;

  Incumbent& incumbent_;
  Questions questions_;
  bool with_prover_;
  std::unique_ptr<prover::Prover> prover_;
  Bytes suggested_ = 0;  // the peak of the plan that the prover has been told of
};

}  // namespace memplan
