// The search and the prover, side by side on one problem (docs/algorithms/prover.md, "Search and
// prover").
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "prover/prover.h"
#include "solve/incumbent.h"
#include "solve/prober.h"
#include "solve/stride.h"

namespace memplan {

// The search is probed from below (is there a plan at the bound?), the prover works from above (is
// there a better one?). They share two integers, the best peak and the bound, and their slices are
// allotted before a round. So two threads, one for each, give the same answer as one. Then the
// prover is asked from below as well, from the bound that both have left.
class SearchAndProver {
 public:
  struct Engines {
    Prober::Search search;  // may be empty
    bool prover = true;
  };

  SearchAndProver(Incumbent& incumbent, Engines engines);

  // Gives `nodes` to the search at the bound, before all rounds, which resume it. Where a fit was
  // asked, the capacity has as many, and they take turns that grow by half.
  void dive(std::int64_t nodes);

  // Gives `slice` nodes to each probe of the search, and about as much time to the prover. Returns
  // false where neither used most of it: then more would not help.
  bool round(std::int64_t slice);

 private:
  // The result of one slice of the prover: the last plan on its way down, and the proof below it.
  struct Descent {
    Plan plan;
    Plan refutation;
    Bytes refuted = -1;
    Stats cost;
    std::vector<std::pair<Status, Round>> rounds;  // `ended_by` where there is no answer
    bool cut_short = false;                        // it could continue
  };

  Descent descend(Bytes limit, std::int64_t conflicts, std::int64_t steps, Stopper* stopper,
                  const std::atomic<bool>* cancel);
  void learn(Descent descent);
  void prepare_prover(Bytes limit);
  bool climb(std::int64_t slice);
  Plan ask_from_below(Bytes limit, prover::Slice* slice);
  std::int64_t steps_down(std::int64_t slice) const;
  std::int64_t steps_of(std::int64_t slice, std::int64_t slices = 1) const;

  Incumbent& incumbent_;
  Prober prober_;
  bool with_prover_;
  std::unique_ptr<prover::Prover> prover_;
  Bytes suggested_ = 0;  // the peak of the plan that the prover begins from
  // What was learned below a limit may not hold below a greater one, so that each has its own.
  std::unique_ptr<prover::Prover> from_below_;
  Bytes asked_ = -1;  // the limit of from_below_
  Stride stride_;
  bool climbs_ = false;  // it has refuted a limit
};

}  // namespace memplan
