// A sequence with the load of each of its steps, which re-runs may leave or enter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "again/model.h"

namespace memplan::again {

// Each run has a slot. The slots of runs that were taken out stay, and hold nothing of their own,
// until the next call of set().
class Timeline {
 public:
  explicit Timeline(const Model& model);

  void set(std::vector<OperatorIdx> runs);
  // What is left of the runs.
  std::vector<OperatorIdx> runs() const;

  std::size_t slots() const { return run_.size(); }
  OperatorIdx run(std::size_t slot) const { return run_[slot]; }
  Bytes load(std::size_t slot) const { return load_[slot]; }
  Bytes peak() const;
  // The bytes above the capacity, of all steps together. It guides the search, and proves nothing.
  double excess(Bytes capacity) const;

  // Takes a re-run out, if the load stays within the capacity.
  bool remove_if_fits(std::size_t slot, Bytes capacity);

  // By how much the excess would grow if these operators ran just before a slot (or at the end),
  // each once and in this order. No run may have been taken out since set().
  double excess_after(std::size_t slot, const std::vector<OperatorIdx>& inserted, Bytes capacity);

  // Whether a copy of the storage that was made before a slot is needed there or later.
  bool is_kept_across(StorageIdx s, std::size_t slot) const;

  // The slot of the next read of the copy of `s` that a step has while it does not touch it; the
  // number of slots if it is only wanted; or -1 if that copy is not needed.
  std::int64_t next_need(StorageIdx s, std::size_t step) const;

  // How many slots and touches were looked at so far, which is what the functions above take in
  // time.
  std::int64_t looked() const { return looked_; }

 private:
  struct Change {  // from a slot up to a slot that all changes have in common
    std::int64_t first;
    Bytes bytes;
  };
  // What the runs that would be inserted do to one storage.
  struct Touch {
    StorageIdx storage;
    std::int32_t made = -1;         // by which of them
    std::int32_t read_before = -1;  // the last read before that
    std::int32_t read_after = -1;   // the last read after it, or of all
    bool is_through = false;        // what was there before is needed later
    std::int64_t last = -1;         // the last slot that touches it before
  };

  bool is_make(StorageIdx s, std::size_t at) const { return model_.is_maker(run_[event_[at]], s); }
  // Where the first event of a storage from a slot on is.
  std::size_t first_event(StorageIdx s, std::size_t slot) const;
  void set_events();
  void add_copies(StorageIdx s);
  void list_changes_of_removal(std::size_t slot);
  void list_touches(std::size_t slot, const std::vector<OperatorIdx>& inserted);
  void erase_events(std::size_t slot);

  const Model& model_;
  std::int64_t looked_ = 0;
  std::vector<OperatorIdx> run_;  // by slot; kNoOperator if it was taken out
  std::vector<Bytes> load_;
  std::vector<Bytes> across_;  // by slot: what is made before it, and needed there or later
  // By storage: the slots that touch it, ascending, from event_[begin_[s]] to before end_[s].
  std::vector<std::size_t> begin_;
  std::vector<std::size_t> end_;
  std::vector<std::int32_t> event_;
  std::vector<Change> changes_;
  std::vector<Touch> touches_;
  std::vector<std::int32_t> touch_of_;  // by storage: its place in touches_, or -1
};

// What is wrong with a sequence, or nullptr: all operators run, first in a legal order, and more
// than once only if they may; and only what has been there, and may be moved, is moved back.
const char* check_runs(const Model& model, const std::vector<OperatorIdx>& runs);

// The cost of the runs beyond the first ones, and of all moves, in units.
std::int64_t extra_of(const Model& model, const std::vector<OperatorIdx>& runs);

// By slot: whether the operator ran before, or a storage is moved back.
std::vector<std::uint8_t> list_reruns(const Model& model, const std::vector<OperatorIdx>& runs);

}  // namespace memplan::again
