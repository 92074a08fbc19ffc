// Propagation over whole cliques: items that are live together are jobs on one machine, with the
// addresses as its time axis.
//
//     0          start                  end        C     All of {a, b, j} would have to lie
//     |            |---a---|---b---|     |         |     between start and end if j did not come
//     |            |         |----j------|--       |     after a and b; there is no room for that.
//
// Both directions share the code. Work is only redone where bounds have changed: `touch` notes
// rises, and the next call looks only at windows that begin in the range of a rise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "memplan/prover.h"
#include "prover/trail.h"

namespace memplan::prover {

class Cliques {
 public:
  Cliques(const Model& model, const ProverOptions& options, Trail& trail);

  // An item's half rose from `old`.
  void touch(Half h, Bytes old) {
    if (touched_[h]) return;
    touched_[h] = true;
    settled_[h] = old;
    risen_.push_back(h);
  }
  // What lies before the half's item, in its direction, has grown: by an item, or by one that has
  // risen since `since` was its bound.
  void touch_set(Half h, Bytes since = kLowest) {
    set_since_[h] = set_touched_[h] ? std::min(set_since_[h], since) : since;
    if (set_touched_[h]) return;
    set_touched_[h] = true;
    sets_.push_back(h);
  }
  // The bound of a touched half when windows were last looked at.
  Bytes settled(Half h) const { return settled_[h]; }
  // To be called after backtracking, which restores a state that was at its fixpoint.
  void forget();

  // Both stop at the first consequence, and a further call resumes there. They return false at a
  // conflict.
  bool propagate_sets(Conflict* conflict);
  bool propagate_windows(Conflict* conflict);

  std::int64_t steps() const { return steps_; }

  // Marked items are in their queue once, and each order has the members of its clique.
  bool check_invariants() const;

 private:
  // A clique in one direction: its windows with lo < start <= hi are to be looked at.
  struct Task {
    Bytes lo = 0;
    Bytes hi = 0;
    bool queued = false;
  };

  static constexpr Bytes kLowest = std::numeric_limits<Bytes>::min();

  void sort(std::int32_t* order, int count, int direction);
  std::int32_t* sorted(int clique, int direction);
  bool propagate_set(Half h, Conflict* conflict);
  Bytes pile(int item, int direction, Bytes since, Bytes best, std::int32_t* clique);
  void schedule();
  bool scan(int clique, int direction, Bytes lo, Bytes hi, Conflict* conflict);
  bool scan_forth(const Window& from, Bytes* load, Conflict* conflict);
  bool scan_back(const Window& from, Bytes load, Conflict* conflict);
  bool place_after(int slot, const Window& window, Conflict* conflict);
  bool place_before(int slot, const Window& window, Conflict* conflict);
  bool decide(Half a, std::int32_t window, int direction, Conflict* conflict);

  const Model& model_;
  const ProverOptions options_;
  Trail& trail_;
  std::vector<std::int32_t> order_[2];  // like the cliques' members, by bound in that direction

  std::vector<char> touched_, set_touched_;  // by item half
  std::vector<Bytes> settled_;               // by item half, if touched: the bound last looked at
  std::vector<Bytes> set_since_;             // by item half, if set_touched
  std::vector<std::int32_t> all_[2];         // all items, by bound in that direction
  std::vector<Bytes> sum_;                   // by clique
  std::vector<Half> risen_, sets_;
  std::vector<Task> tasks_;  // by 2 * clique + direction
  std::vector<std::int32_t> queue_;

  // The clique at hand, by ascending end.
  std::vector<std::int32_t> item_;
  std::vector<Bytes> start_, end_, size_;
  int count_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace memplan::prover
