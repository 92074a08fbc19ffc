// Two cliques and an item p that is in both: what lies below it in one, and above it in the other.
//
//     C |--a2--|             |    What is in both cliques lies below p or above it, and takes its
//       |      |-----b2------|    room in either case. So the sizes of
//       |=========p==========|        all that is in both, with p,
//       |---------k----------|        what is in the first only and below p,
//       |--a1--|             |        what is in the second only and above p
//     0 |      |-----b1------|    have no more than C together; here p + k + a1 + b2 <= C.
//         first      second       And the other way round: p + k + a2 + b1 <= C.
//
// The rule needs no decision on what is in both. That makes it strong: resolution would have to go
// through all these decisions.
#pragma once

#include <cstdint>
#include <vector>

#include "prover/trail.h"
#include "util/invariants.h"

namespace memplan::prover {

class Cuts {
 public:
  Cuts(const Model& model, Trail& trail);

  // An order of the item with something else was decided.
  void touch(int item) {
    if (touched_[item]) return;
    touched_[item] = true;
    queue_.push_back(item);
  }
  void forget();
  bool propagate(Conflict* conflict);
  std::int64_t steps() const { return steps_; }

  // The queue has every touched item once.
  bool check_invariants() const {
    for (const std::int32_t i : queue_) MEMPLAN_ASSERT(touched_[i]);
    std::size_t touched = 0;
    for (const char mark : touched_) touched += mark != 0 ? 1 : 0;
    MEMPLAN_ASSERT(touched == queue_.size());
    return true;
  }

 private:
  // What a cut leaves around an item, in the two ways to read it.
  struct Balance {
    Bytes room = 0;          // for what is not in both cliques
    Bytes used[2] = {0, 0};  // by what is decided
    Bytes largest = 0;       // of what is not
  };

  Balance weigh(int item, std::int32_t cut);
  bool decide(int item, std::int32_t cut, const Balance& balance, Conflict* conflict);

  const Model& model_;
  Trail& trail_;
  std::vector<char> touched_;  // by item
  std::vector<std::int32_t> queue_;
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
