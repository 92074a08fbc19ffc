#include "memplan/repacker.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "model/subproblem.h"
#include "repack/state.h"
#include "util/invariants.h"

namespace memplan {

std::vector<Slot> Repacker::State::add(const Problem& rows) {
  const std::string fault = check(rows);
  if (!fault.empty()) throw std::invalid_argument(fault);
  if (has_relations(rows)) {
    throw std::invalid_argument("a repacker supports neither conflicts nor groups: use solve().");
  }
  Bytes total = total_;
  for (const Bytes size : rows.size) {
    if (size > kMaxBytes - total) {
      throw std::invalid_argument("a repacker takes at most 2^62 bytes in all.");
    }
    total += size;
  }
  check_pins(rows);
  if (rows.count() == 0) return {};

  arena.make_room(*std::min_element(rows.start.begin(), rows.start.end()),
                  *std::max_element(rows.end.begin(), rows.end.end()), rows.size.size());
  std::vector<Slot> slots;
  slots.reserve(rows.size.size());
  auto gap = rows.gaps.begin();
  for (BufferIdx b = 0; b < rows.count(); ++b) {
    const auto first = gap;
    while (gap != rows.gaps.end() && gap->buffer == b) ++gap;
    slots.push_back(arena.add(rows, b, {first, gap}));
  }
  MEMPLAN_ASSERT(gap == rows.gaps.end());
  total_ = total;
  return slots;
}

// Checks that the new pins do not collide with those that are there, or with reserved ranges.
void Repacker::State::check_pins(const Problem& rows) const {
  std::vector<BufferIdx> pinned;
  for (BufferIdx b = 0; b < rows.count(); ++b) {
    if (rows.pin_of(b) != kNoOffset) pinned.push_back(b);
  }
  if (pinned.empty()) return;
  std::vector<Slot> slots = arena.slots();
  slots.erase(std::remove_if(slots.begin(), slots.end(),
                             [this](Slot slot) { return !arena.is_pinned(slot); }),
              slots.end());
  Problem all = arena.problem(slots);
  all.pin.resize(all.size.size(), kNoOffset);
  all.alignment.resize(all.size.size(), 1);
  const Problem added = subproblem(rows, pinned);
  const auto offset = all.count();
  for (Gap gap : added.gaps) {
    gap.buffer += offset;
    all.gaps.push_back(gap);
  }
  for (BufferIdx b = 0; b < added.count(); ++b) {
    all.start.push_back(added.start[b]);
    all.end.push_back(added.end[b]);
    all.size.push_back(added.size[b]);
    all.alignment.push_back(added.alignment_of(b));
    all.pin.push_back(added.pin[b]);
  }
  const std::string fault = check(all);
  if (!fault.empty()) throw std::invalid_argument(fault);
}

void Repacker::State::remove(const std::vector<Slot>& slots) {
  std::vector<Slot> sorted = slots;
  std::sort(sorted.begin(), sorted.end());
  for (const Slot slot : sorted) require(slot);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw std::out_of_range("a slot to remove is named twice.");
  }
  for (const Slot slot : slots) {
    total_ -= arena.size(slot);
    arena.remove(slot);
  }
}

Repacker::Repacker(std::vector<Reserved> reserved) {
  Problem empty;
  empty.reserved = reserved;
  if (const std::string fault = check(empty); !fault.empty()) throw std::invalid_argument(fault);
  state_ = std::make_unique<State>(std::move(reserved));
}

Repacker::~Repacker() = default;
Repacker::Repacker(const Repacker& other) : state_(std::make_unique<State>(other.idle())) {}
Repacker& Repacker::operator=(const Repacker& other) {
  if (this != &other) state_ = std::make_unique<State>(other.idle());
  return *this;
}
Repacker::Repacker(Repacker&&) noexcept = default;
Repacker& Repacker::operator=(Repacker&&) noexcept = default;

Repacker::State& Repacker::idle() const {
  if (state_->busy) throw std::runtime_error("a repacker cannot serve two threads at once.");
  return *state_;
}

std::vector<Slot> Repacker::add(const Problem& rows) { return idle().add(rows); }

void Repacker::remove(const std::vector<Slot>& slots) { idle().remove(slots); }

Repacked Repacker::repack(std::optional<Bytes> capacity, const SolveOptions& options) {
  return idle().repack(capacity, options);
}

std::size_t Repacker::count() const { return idle().arena.count(); }
Bytes Repacker::lower_bound() { return idle().lower_bound(); }
Bytes Repacker::peak() const { return idle().arena.peak(); }
std::vector<Slot> Repacker::slots() const { return idle().arena.slots(); }

Bytes Repacker::offset(Slot slot) const {
  idle().require(slot);
  return state_->arena.offset(slot);
}

Problem Repacker::problem(const std::vector<Slot>& slots) const {
  for (const Slot slot : slots) idle().require(slot);
  return idle().arena.problem(slots);
}

}  // namespace memplan
