// Bounds on the offsets of items, and what relations and sections infer from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "exact/pair_relations.h"
#include "memplan/budget.h"

namespace memplan {

// Keeps lower <= offset <= upper for every item, and for every relation the ranges of differences
// that are still open: first .. last, a contiguous part of its list. Every change is on a trail.
class Propagation {
 public:
  Propagation(const Items& items, const Relations& relations, Stopper& stopper);

  Bytes lower(ItemIdx i) const { return lower_[i]; }
  Bytes upper(ItemIdx i) const { return upper_[i]; }
  std::int32_t first(std::int32_t relation) const { return first_[relation]; }
  std::int32_t last(std::int32_t relation) const { return last_[relation]; }

  // Leaves only the ranges first .. last of a relation open.
  void restrict(std::int32_t relation, std::int32_t first, std::int32_t last);

  // Infers until nothing changes. False if that leaves no solution.
  //
  // At a fixpoint, offset = lower satisfies every relation with one open range [from, to]:
  // lower_j is the next legal offset at or above lower_i + from, or higher, so that the
  // difference is at least `from`; and the next legal offset at or above lower_j - to is at or
  // below lower_i, so that it is at most `to`. It is legal by itself, having been rounded.
  bool fixpoint();
  // Rounding may make bounds creep for too long. Then fixpoint() returns false without a proof, and
  // gave_up() is true from then on.
  bool gave_up() const { return gave_up_; }

  struct Mark {
    std::size_t bounds;
    std::size_t ranges;
  };
  Mark mark() const { return {bound_trail_.size(), range_trail_.size()}; }
  void undo(const Mark& mark);

  // Bounds are legal and do not cross, open ranges are a part of their lists, and between two calls
  // nothing is awake or touched.
  bool check_invariants() const;

 private:
  struct Window {  // of an item in a section
    ItemIdx item;
    Bytes lower;
    Bytes upper;
  };
  struct Task {  // a window as a job on the address axis
    Bytes release;
    Bytes deadline;
    Bytes length;
  };
  struct Cause {  // of the last rise of a lower bound
    ItemIdx item = kNoItem;
    Bytes step = 0;
    std::int64_t fixpoint = 0;  // the call that it was in
    std::int32_t rises = 0;     // within that call
  };
  struct OldRange {
    std::int32_t relation;
    std::int32_t first;
    std::int32_t last;
  };

  void wake(ItemIdx i);
  void touch(SectionIdx s);
  bool relations_hold();
  bool revise(std::int32_t relation);
  bool raise(ItemIdx i, Bytes bound, ItemIdx because, Bytes step);
  bool sink(ItemIdx i, Bytes bound);
  void set(Bytes* bound, Bytes value, ItemIdx i);
  bool rising_for_ever(ItemIdx i);
  bool sections_hold();
  bool section_holds(SectionIdx s);
  // Whether no relation has anything to infer.
  bool is_fixpoint() const;

  const Items& items_;
  const Relations& relations_;
  Stopper& stopper_;
  std::vector<Bytes> lower_;
  std::vector<Bytes> upper_;
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> last_;
  std::vector<std::pair<Bytes*, Bytes>> bound_trail_;
  std::vector<OldRange> range_trail_;

  std::vector<ItemIdx> awake_;  // a queue: items whose relations are to be revised
  std::vector<char> is_awake_;
  std::vector<Cause> cause_;
  std::vector<std::int64_t> visited_;
  std::int64_t visit_ = 0;
  std::int64_t calls_ = 0;
  std::int64_t changes_ = 0;  // of bounds, in this call of fixpoint()
  bool gave_up_ = false;

  std::vector<std::vector<Window>> in_section_;
  std::vector<char> touched_;  // by section: a bound has changed since it was checked
  std::vector<SectionIdx> touched_list_;
  std::vector<Task> tasks_;
  std::vector<std::pair<Bytes, Bytes>> running_;  // a heap of (deadline, length left)
};

}  // namespace memplan
