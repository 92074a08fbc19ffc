#include "repack/arena.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "util/invariants.h"

namespace memplan::repack {

Arena::Arena(std::vector<Reserved> reserved)
    : reserved_(std::move(reserved)), timetable_(0, 0, 0) {}

// Reserves twice what is asked for, so that a sequence of calls grows the arena a few times only.
void Arena::make_room(Time first, Time last, std::size_t more) {
  if (count_ + more <= room_ && timetable_.covers(first, last)) return;
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    if (top_[slot] == kUnused) continue;
    first = std::min(first, rows_[slot].start);
    last = std::max(last, rows_[slot].end);
  }
  constexpr Time kUtmost = Time{1} << 62;
  const Time half = last / 2 - first / 2;
  first = std::max(first, half - kUtmost) - half;
  last = std::min(last, kUtmost - half) + half;
  room_ = 2 * (count_ + more);
  timetable_ = Timetable(first, last, room_);
  if (std::exchange(filed_, false)) file();
}

void Arena::file() {
  if (filed_) return;
  filed_ = true;
  timetable_.clear();
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    if (top_[slot] != kUnused && top_[slot] != kHomeless) put(slot, offset(slot));
  }
}

Slot Arena::add(const Problem& problem, BufferIdx row, std::vector<Gap> gaps) {
  Slot slot = slot_count();
  if (free_.empty()) {
    rows_.emplace_back();
    top_.push_back(kHomeless);
    before_.push_back(kUnchanged);
  } else {
    slot = free_.back();
    free_.pop_back();
    top_[slot] = kHomeless;
  }
  has_gaps_ = has_gaps_ || !gaps.empty();
  rows_[slot] = {problem.start[row],        problem.end[row],    problem.size[row],
                 problem.alignment_of(row), problem.pin_of(row), std::move(gaps)};
  ++count_;
  return slot;
}

void Arena::remove(Slot slot) {
  MEMPLAN_ASSERT(uses(slot) && changes_.empty());
  take(slot);
  top_[slot] = kUnused;
  free_.push_back(slot);
  --count_;
}

Bytes Arena::peak() const {
  Bytes peak = 0;
  for (const Bytes top : top_) {
    if (top != kHomeless) peak = std::max(peak, top);
  }
  return peak;
}

Bytes Arena::held_at(const Row& row, Time time) {
  for (const Gap& gap : row.gaps) {
    if (gap.start <= time && time < gap.end) return gap.upper - gap.lower;
  }
  return row.size;
}

Bytes Arena::load_at(Time time) const {
  MEMPLAN_ASSERT(filed_);
  Bytes load = 0;
  timetable_.meet(time, time + 1, [&](const Tenant& tenant) {
    load += has_gaps_ ? held_at(rows_[tenant.slot], time) : tenant.upper - tenant.lower;
  });
  return load;
}

// Only the times at which a buffer begins are checked, since the load is greatest at one of them.
std::optional<Time> Arena::overfull(Slot slot, Bytes limit) const {
  const Row& row = rows_[slot];
  if (row.size > limit) return row.gaps.empty() ? std::optional(row.start) : std::nullopt;
  if (has_gaps_) return std::nullopt;
  std::vector<std::pair<Time, Bytes>> changes;
  meet(slot, [&](const Tenant& tenant) {
    changes.emplace_back(std::max(tenant.start, row.start), tenant.upper - tenant.lower);
    if (tenant.end < row.end) changes.emplace_back(tenant.end, tenant.lower - tenant.upper);
  });
  std::sort(changes.begin(), changes.end());  // of those at one time, ends come first
  Bytes load = row.size;
  for (const auto& [time, change] : changes) {
    load += change;
    if (load > limit) return time;
  }
  return std::nullopt;
}

std::vector<Slot> Arena::holding(Time time) const {
  std::vector<Slot> slots = this->slots();
  const auto idle = [&](Slot slot) {
    const Row& row = rows_[slot];
    return time < row.start || row.end <= time || held_at(row, time) == 0;
  };
  slots.erase(std::remove_if(slots.begin(), slots.end(), idle), slots.end());
  return slots;
}

std::vector<Slot> Arena::slots() const {
  std::vector<Slot> slots;
  slots.reserve(count_);
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    if (top_[slot] != kUnused) slots.push_back(slot);
  }
  return slots;
}

Problem Arena::problem(const std::vector<Slot>& slots) const {
  Problem problem;
  problem.reserved = reserved_;
  const std::size_t count = slots.size();
  for (auto* column : {&problem.start, &problem.end, &problem.size, &problem.alignment}) {
    column->reserve(count);
  }
  bool aligned = false;
  bool pinned = false;
  for (const Slot slot : slots) {
    const Row& row = rows_[slot];
    for (Gap gap : row.gaps) {
      gap.buffer = static_cast<BufferIdx>(problem.size.size());
      problem.gaps.push_back(gap);
    }
    problem.start.push_back(row.start);
    problem.end.push_back(row.end);
    problem.size.push_back(row.size);
    problem.alignment.push_back(row.alignment);
    aligned = aligned || row.alignment != 1;
    pinned = pinned || row.pin != kNoOffset;
  }
  // Without alignments the column must be empty, since solvers have more rules then.
  if (!aligned) problem.alignment.clear();
  if (!pinned) return problem;
  for (const Slot slot : slots) problem.pin.push_back(rows_[slot].pin);
  return problem;
}

std::vector<Bytes> Arena::columns(const std::vector<Slot>& slots) const {
  const std::size_t count = slots.size();
  std::vector<Bytes> columns(Repacker::kColumns * count);
  Bytes* at = columns.data();
  for (const Slot slot : slots) {
    const Row& row = rows_[slot];
    const Bytes values[] = {row.start, row.end, row.size, row.alignment, row.pin, offset(slot)};
    for (std::size_t k = 0; k < Repacker::kColumns; ++k) at[k * count] = values[k];
    ++at;
  }
  return columns;
}

void Arena::above(Bytes limit, std::vector<Slot>* slots) const {
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    if (top_[slot] > limit) slots->push_back(slot);
  }
}

// Raises the offset until it is free in every run. A run never goes back, since what it has passed
// lies below the offset.
Bytes Arena::lowest_place(Slot slot, Bytes limit) {
  MEMPLAN_ASSERT(filed_);
  const Row& row = rows_[slot];
  const Bytes top = limit - row.size;  // the highest offset allowed
  if (top < 0) return kNoOffset;
  if (row.size == 0) return 0;
  runs_.clear();
  timetable_.find_runs(row.start, row.end, &runs_);
  for (const Timetable::Run& run : runs_) looks_ += run.end - run.at;
  Bytes offset = lowest_beside_reserved(0, row);
  if (offset > top) return kNoOffset;
  std::size_t agreed = 0;
  for (std::size_t i = 0; agreed < runs_.size(); i = i + 1 < runs_.size() ? i + 1 : 0) {
    Timetable::Run& run = runs_[i];
    ++agreed;
    for (; run.at != run.end && run.at->lower < offset + row.size; ++run.at) {
      const Tenant& held = *run.at;
      if (held.upper <= offset || held.start >= row.end || row.start >= held.end) continue;
      if (held.upper > top) return kNoOffset;
      MEMPLAN_ASSERT(held.upper > offset);  // the offset only rises
      offset = lowest_beside_reserved(held.upper, row);
      if (offset > top) return kNoOffset;
      agreed = 1;
    }
  }
  return offset;
}

// The lowest legal offset at or above `from`, with all other buffers left out.
Bytes Arena::lowest_beside_reserved(Bytes from, const Row& row) const {
  Bytes offset = align_up(from, row.alignment);
  for (const Reserved& r : reserved_) {
    if (r.upper > offset && r.lower - row.size < offset) offset = align_up(r.upper, row.alignment);
  }
  return offset;
}

void Arena::in_the_way(Slot slot, Bytes offset, std::vector<Slot>* others) const {
  MEMPLAN_ASSERT(filed_);
  const Row& row = rows_[slot];
  if (row.size == 0) return;
  timetable_.meet(row.start, row.end, [&](const Tenant& tenant) {
    if (tenant.lower < offset + row.size && offset < tenant.upper) others->push_back(tenant.slot);
  });
}

// Whether the buffer may have the offset: it is aligned, at the pin if there is one, and free.
bool Arena::may_lie(Slot slot, Bytes offset) const {
  if (!kAssertions) return true;
  const Row& row = rows_[slot];
  MEMPLAN_ASSERT(offset >= 0 && offset % row.alignment == 0);
  MEMPLAN_ASSERT(row.pin == kNoOffset || row.pin == offset);
  for (const Reserved& r : reserved_) {
    MEMPLAN_ASSERT(row.size == 0 || offset + row.size <= r.lower || r.upper <= offset);
  }
  std::vector<Slot> others;
  if (!has_gaps_) in_the_way(slot, offset, &others);
  return others.empty() || others == std::vector<Slot>{slot};
}

void Arena::pass(Words& words) {
  MEMPLAN_ASSERT(changes_.empty());
  words.pass_all(reserved_, [&](Reserved& r) {
    words.pass(r.lower);
    words.pass(r.upper);
  });
  words.pass_all(rows_, [&](Row& row) { pass_row(words, row); });
  words.pass_all(top_);
  words.pass_all(free_);
  words.pass(room_);
  words.pass(looks_);
  words.pass(has_gaps_);
  if (words.reads()) {
    Words::require(is_well_formed());
    before_.assign(rows_.size(), kUnchanged);
    count_ = rows_.size() - free_.size();
  }
  pass_timetable(words);
}

void Arena::pass_row(Words& words, Row& row) {
  for (std::int64_t* each : {&row.start, &row.end, &row.size, &row.alignment, &row.pin}) {
    words.pass(*each);
  }
  words.pass_all(row.gaps, [&](Gap& gap) {
    for (std::int64_t* each : {&gap.start, &gap.end, &gap.lower, &gap.upper}) words.pass(*each);
  });
}

// The order of its tenants is passed too, since later visits go by it.
void Arena::pass_timetable(Words& words) {
  Time first = timetable_.first();
  Time last = timetable_.last();
  std::vector<Slot> tenants;
  if (filed_) timetable_.for_each([&](const Tenant& each) { tenants.push_back(each.slot); });
  words.pass(first);
  words.pass(last);
  words.pass(filed_);
  words.pass_all(tenants);
  if (!words.reads()) return;
  Words::require(first <= last && room_ <= 2 * rows_.size());
  timetable_ = Timetable(first, last, room_);
  const bool filed = std::exchange(filed_, true);
  std::size_t held = 0;
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    const bool placed = uses(slot) && offset(slot) != kNoOffset;
    held += placed && rows_[slot].size > 0 ? 1 : 0;
  }
  Words::require(tenants.size() == (filed ? held : 0));
  for (const Slot slot : tenants) {
    Words::require(uses(slot) && offset(slot) != kNoOffset && rows_[slot].size > 0);
    Words::require(!timetable_.has(slot));
    put(slot, offset(slot));
  }
  filed_ = filed;
}

// Whether what was read are buffers, slots that are free, and legal offsets.
bool Arena::is_well_formed() const {
  if (top_.size() != rows_.size()) return false;
  std::vector<char> is_free(rows_.size(), 0);
  for (const Slot slot : free_) {
    if (slot < 0 || slot >= slot_count() || top_[slot] != kUnused) return false;
    if (std::exchange(is_free[slot], char{1}) != 0) return false;
  }
  std::vector<Slot> used;
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    if (is_free[slot] != 0) continue;
    const Row& row = rows_[slot];
    const bool placed = top_[slot] != kHomeless;
    if (row.size < 0 || row.pin < kNoOffset || top_[slot] < 0) return false;
    if (!row.gaps.empty() && !has_gaps_) return false;
    if (placed && (top_[slot] > kMaxBytes || top_[slot] < row.size)) return false;
    used.push_back(slot);
  }
  const Problem all = problem(used);
  return std::all_of(all.size.begin(), all.size.end(),
                     [](Bytes each) { return each <= kMaxBytes; }) &&
         check(all).empty();
}

bool Arena::check_invariants() const {
  if (!kAssertions) return true;
  if (!filed_) {
    Arena filed = *this;
    filed.file();
    return filed.check_invariants();
  }
  MEMPLAN_ASSERT(rows_.size() == top_.size() && timetable_.check_invariants());
  MEMPLAN_ASSERT(rows_.size() == before_.size());
  for (const Bytes before : before_) MEMPLAN_ASSERT(!changes_.empty() || before == kUnchanged);
  MEMPLAN_ASSERT(free_.size() + count_ == rows_.size());
  for (const Slot slot : free_) MEMPLAN_ASSERT(top_[slot] == kUnused);
  std::size_t used = 0, held = 0, tenants = 0;
  for (Slot slot = 0; slot < slot_count(); ++slot) {
    used += top_[slot] != kUnused ? 1 : 0;
    const bool placed = top_[slot] != kUnused && top_[slot] != kHomeless;
    held += placed && rows_[slot].size > 0 ? 1 : 0;
    MEMPLAN_ASSERT(timetable_.has(slot) == (placed && rows_[slot].size > 0));
    MEMPLAN_ASSERT(!placed || may_lie(slot, offset(slot)));
  }
  timetable_.for_each([&](const Tenant& tenant) {
    ++tenants;
    const Row& row = rows_[tenant.slot];
    MEMPLAN_ASSERT(tenant.lower == offset(tenant.slot) && tenant.upper == top_[tenant.slot]);
    MEMPLAN_ASSERT(tenant.start == row.start && tenant.end == row.end);
  });
  MEMPLAN_ASSERT(used == count_ && tenants == held);
  return true;
}
void Arena::place(Slot slot, Bytes offset) {
  MEMPLAN_ASSERT(uses(slot) && this->offset(slot) == kNoOffset && may_lie(slot, offset));
  note_change(slot);
  put(slot, offset);
}

void Arena::displace(Slot slot) {
  MEMPLAN_ASSERT(uses(slot) && offset(slot) != kNoOffset);
  note_change(slot);
  take(slot);
}

void Arena::note_change(Slot slot) {
  changes_.emplace_back(slot, offset(slot));
  if (before_[slot] == kUnchanged) before_[slot] = offset(slot);
}

void Arena::put(Slot slot, Bytes offset) {
  const Row& row = rows_[slot];
  top_[slot] = offset + row.size;
  if (!filed_ || row.size == 0) return;
  timetable_.put({offset, offset + row.size, row.start, row.end, slot});
}

void Arena::take(Slot slot) {
  top_[slot] = kHomeless;
  if (filed_ && timetable_.has(slot)) timetable_.take(slot);
}

void Arena::replace(const std::vector<Slot>& slots, const std::vector<Bytes>& offsets) {
  MEMPLAN_ASSERT(slots.size() == offsets.size());
  filed_ = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (offset(slots[i]) == offsets[i]) continue;
    note_change(slots[i]);
    put(slots[i], offsets[i]);
  }
}

std::int64_t Arena::settle() {
  std::int64_t moved = 0;
  for (const auto& [slot, last] : changes_) {
    const Bytes before = std::exchange(before_[slot], kUnchanged);
    if (before != kUnchanged && before != kNoOffset && before != offset(slot)) ++moved;
  }
  changes_.clear();
  return moved;
}

void Arena::undo_to(std::size_t mark) {
  MEMPLAN_ASSERT(mark <= changes_.size());
  for (; changes_.size() > mark; changes_.pop_back()) {
    const auto [slot, before] = changes_.back();
    take(slot);
    if (before != kNoOffset) put(slot, before);
    before_[slot] = kUnchanged;
  }
  for (const auto& [slot, before] : changes_) {
    if (before_[slot] == kUnchanged) before_[slot] = before;
  }
}

}  // namespace memplan::repack
