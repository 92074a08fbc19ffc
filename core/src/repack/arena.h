// The buffers of a repacker, and where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "memplan/problem.h"
#include "memplan/repacker.h"
#include "model/blocks.h"
#include "repack/timetable.h"
#include "repack/words.h"
#include "util/invariants.h"

namespace memplan::repack {

// Every buffer is one row, by slot; those without an offset are unplaced. Until
// settle(), undo_to() takes back what was placed and displaced.
class Arena {
 public:
  explicit Arena(std::vector<Reserved> reserved);

  // The problem must be well formed. Its capacity and reserved ranges are ignored.
  Slot add(const Problem& problem, BufferIdx row, std::vector<Gap> gaps);
  void remove(Slot slot);
  // Makes room for so many more buffers that live between these times.
  void make_room(Time first, Time last, std::size_t more);

  std::size_t count() const { return count_; }
  Slot slot_count() const { return static_cast<Slot>(rows_.size()); }
  bool uses(Slot slot) const { return slot >= 0 && slot < slot_count() && top_[slot] != kUnused; }
  bool is_pinned(Slot slot) const { return rows_[slot].pin != kNoOffset; }
  Bytes size(Slot slot) const { return rows_[slot].size; }
  Bytes pin(Slot slot) const { return rows_[slot].pin; }
  Bytes alignment(Slot slot) const { return rows_[slot].alignment; }
  const std::vector<Reserved>& reserved() const { return reserved_; }
  Bytes offset(Slot slot) const {
    return top_[slot] == kHomeless ? kNoOffset : top_[slot] - rows_[slot].size;
  }
  Bytes peak() const;
  // Whether all have a place.
  bool is_whole() const { return std::find(top_.begin(), top_.end(), kHomeless) == top_.end(); }
  Bytes load_at(Time time) const;  // of those that are placed
  // A time at which this buffer and those that are placed hold more than the limit, if there is
  // one.
  std::optional<Time> overfull(Slot slot, Bytes limit) const;
  // All buffers that hold something at that time, placed or not.
  std::vector<Slot> holding(Time time) const;
  std::vector<Slot> slots() const;
  Problem problem(const std::vector<Slot>& slots) const;
  // Repacker::columns().
  std::vector<Bytes> columns(const std::vector<Slot>& slots) const;

  // Appends the buffers that are unplaced or end above the limit.
  void above(Bytes limit, std::vector<Slot>* slots) const;
  // The lowest free offset that ends at or below the limit, or kNoOffset.
  Bytes lowest_place(Slot slot, Bytes limit);
  // Finds the buffers that are in the way at this offset.
  void in_the_way(Slot slot, Bytes offset, std::vector<Slot>* others) const;
  // How many placed buffers were looked at so far: a clock that runs alike on every machine.
  std::int64_t looks() const { return looks_; }
  // Visits all buffers with which this one shares a time, wherever they lie.
  template <typename Visit>
  void meet(Slot slot, Visit visit) const {
    MEMPLAN_ASSERT(filed_);
    if (rows_[slot].size > 0) timetable_.meet(rows_[slot].start, rows_[slot].end, visit);
  }
  void place(Slot slot, Bytes offset);
  void displace(Slot slot);
  // Gives every one of these buffers its offset, whatever lies there now, as part of a new plan.
  void replace(const std::vector<Slot>& slots, const std::vector<Bytes>& offsets);
  // A new plan leaves the timetable out of date. This brings it up to date for the calls above.
  void file();

  // Returns how many of the buffers that were placed before lie elsewhere now.
  std::int64_t settle();
  // The number of changes since settle(), as an argument of undo_to().
  std::size_t mark() const { return changes_.size(); }
  void undo_to(std::size_t mark);

  // Writes all that later calls depend on, or reads it into an arena without buffers. Throws
  // std::invalid_argument for words that are no arena.
  void pass(Words& words);

  // A slot is used or free, a placed buffer is in the timetable at its offset, and no buffer lies
  // on another (where there are no gaps to lie in).
  bool check_invariants() const;

 private:
  static constexpr Bytes kUnused = -1;
  static constexpr Bytes kHomeless = kMaxBytes + 1;
  static constexpr Bytes kUnchanged = kMaxBytes + 2;  // in before_

  struct Row {
    Time start = 0;
    Time end = 0;
    Bytes size = 0;
    Bytes alignment = 1;
    Bytes pin = kNoOffset;
    std::vector<Gap> gaps;
  };
  static Bytes held_at(const Row& row, Time time);
  void pass_row(Words& words, Row& row);
  void pass_timetable(Words& words);
  bool is_well_formed() const;
  void note_change(Slot slot);
  void put(Slot slot, Bytes offset);
  void take(Slot slot);
  bool may_lie(Slot slot, Bytes offset) const;
  Bytes lowest_beside_reserved(Bytes from, const Row& row) const;

  std::vector<Reserved> reserved_;
  Timetable timetable_;
  bool filed_ = true;       // the timetable has what is placed
  std::vector<Row> rows_;   // by slot
  std::vector<Bytes> top_;  // offset + size, or one of the above: a column, as it is read through
  std::vector<Slot> free_;
  std::size_t count_ = 0;
  std::size_t room_ = 0;  // for so many slots
  bool has_gaps_ = false;
  std::vector<std::pair<Slot, Bytes>> changes_;  // and the offset before
  std::vector<Bytes> before_;         // by slot: the offset at settle(), if changed since
  std::vector<Timetable::Run> runs_;  // at work
  std::int64_t looks_ = 0;
};

}  // namespace memplan::repack
