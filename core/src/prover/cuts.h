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
// through all these decisions. Where few items are undecided, the sums of all their subsets are
// compared: what lies below p in the first clique may differ from what does in the second only by
// the room that is left.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/prover.h"
#include "prover/trail.h"
#include "util/invariants.h"

namespace memplan::prover {

class Cuts {
 public:
  Cuts(const Model& model, const ProverOptions& options, Trail& trail);

  // The order of two items was decided: this is news to the cuts with one of them in both cliques
  // and the other in one.
  void touch(int item, int other);
  // All cuts are to be looked at.
  void touch_all();
  void forget();
  bool propagate(Conflict* conflict);
  std::int64_t steps() const { return steps_; }

  // The queue has every touched place once.
  bool check_invariants() const {
    for (const Place& place : queue_) MEMPLAN_ASSERT(touched_[place.index]);
    std::size_t touched = 0;
    for (const char mark : touched_) touched += mark != 0 ? 1 : 0;
    MEMPLAN_ASSERT(touched == queue_.size());
    return true;
  }

 private:
  // An item that is in both cliques of a cut; the index is that of the cut in the lists of items.
  struct Place {
    std::int32_t item;
    std::int32_t index;
  };
  // What a cut leaves around an item, in the two ways to read it.
  struct Balance {
    Bytes room = 0;           // for what is not in both cliques
    Bytes used[2] = {0, 0};   // by what is decided
    Bytes largest = 0;        // of what is not
    Bytes below[2] = {0, 0};  // by side: what is decided to lie below the item
    Bytes total[2] = {0, 0};  // by side
    int open = 0;             // how many are not decided
  };

  void touch(Place place) {
    if (touched_[place.index]) return;
    touched_[place.index] = true;
    queue_.push_back(place);
  }
  bool look(int item, std::int32_t cut, Conflict* conflict);
  Balance weigh(int item, std::int32_t cut);
  bool decide(int item, std::int32_t cut, const Balance& balance, Conflict* conflict);
  bool split(int item, std::int32_t cut, const Balance& balance, Conflict* conflict);

  const Model& model_;
  const ProverOptions options_;
  Trail& trail_;
  std::vector<char> touched_;  // by index in the cuts of all items
  std::vector<Place> queue_;
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
