#include "model/neighbours.h"

#include <algorithm>
#include <cstddef>

#include "util/bit_scan.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::int32_t kNoNeighbour = -1;
constexpr std::int32_t kLate = -2;

constexpr std::size_t kFewestLate = 64;
constexpr std::size_t kLateShare = 64;  // of those in order, one part of so many

// So many entries of a row cost as much as a visit to an interval.
constexpr std::int64_t kEntriesPerStep = 2;

}  // namespace

Neighbours::Neighbours(const Problem& problem) : problem_(problem) {
  if (problem.conflicts.empty()) return;
  offset_.assign(problem.size.size(), 0);
  slot_.assign(problem.size.size(), kNoNeighbour);
  marks_.assign(problem.size.size() / 64 + 1, 0);
}

void Neighbours::clear() {
  std::fill(slot_.begin(), slot_.end(), kNoNeighbour);
  by_address_.clear();
  late_.clear();
}

bool Neighbours::check_invariants() const {
  for (std::size_t i = 0; i < by_address_.size(); ++i) {
    MEMPLAN_ASSERT(slot_[by_address_[i].row] == static_cast<std::int32_t>(i));
    MEMPLAN_ASSERT(offset_[by_address_[i].row] == by_address_[i].key);
    MEMPLAN_ASSERT(i == 0 || by_address_[i - 1].key <= by_address_[i].key);
  }
  for (const Ranked& late : late_) {
    MEMPLAN_ASSERT(slot_[late.row] == kLate && offset_[late.row] == late.key);
  }
  MEMPLAN_ASSERT(slot_.size() - static_cast<std::size_t>(
                                    std::count(slot_.begin(), slot_.end(), kNoNeighbour)) ==
                 by_address_.size() + late_.size());
  for (const std::uint64_t marks : marks_) MEMPLAN_ASSERT(marks == 0);
  return true;
}
void Neighbours::place(BufferIdx b, Bytes offset) {
  if (problem_.conflicts.first(b) == problem_.conflicts.last(b) || problem_.size[b] == 0) return;
  MEMPLAN_ASSERT(slot_[b] == kNoNeighbour);
  offset_[b] = offset;
  slot_[b] = kLate;
  late_.push_back({offset, b});
  if (late_.size() >= kFewestLate + by_address_.size() / kLateShare) put_in_order();
}

void Neighbours::put_in_order() {
  sort_ranked(late_.data(), late_.data() + late_.size());
  merged_.resize(by_address_.size() + late_.size());
  std::merge(by_address_.begin(), by_address_.end(), late_.begin(), late_.end(), merged_.begin(),
             [](const Ranked& x, const Ranked& y) {
               return x.key != y.key ? x.key < y.key : x.row < y.row;
             });
  by_address_.swap(merged_);
  late_.clear();
  for (std::size_t i = 0; i < by_address_.size(); ++i) {
    slot_[by_address_[i].row] = static_cast<std::int32_t>(i);
  }
}

std::int64_t Neighbours::list(BufferIdx b, std::vector<Interval>* intervals) {
  if (problem_.conflicts.empty() || problem_.size[b] == 0) return 0;
  const BufferIdx* const first = problem_.conflicts.first(b);
  const BufferIdx* const last = problem_.conflicts.last(b);
  const std::size_t words = by_address_.size() / 64 + 1;
  const bool sparse =
      static_cast<std::size_t>(last - first) < words;  // sorting costs no more than marking
  unsorted_.clear();
  for (const BufferIdx* other = first; other != last; ++other) {
    const std::int32_t slot = slot_[*other];
    if (slot == kNoNeighbour) continue;
    if (slot == kLate || sparse) {
      unsorted_.push_back({offset_[*other], *other});
    } else {
      marks_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
  }
  sort_ranked(unsorted_.data(), unsorted_.data() + unsorted_.size());

  const std::size_t begin = intervals->size();
  const auto append = [&](const Interval& next) {
    if (intervals->size() > begin && next.lower <= intervals->back().upper) {
      intervals->back().upper = std::max(intervals->back().upper, next.upper);
    } else {
      intervals->push_back(next);
    }
  };
  auto late = unsorted_.begin();
  for (std::size_t w = 0; w < words && !sparse; ++w) {
    MEMPLAN_ASSERT(marks_[w] == 0 || 64 * w < by_address_.size());
    for (; marks_[w] != 0; marks_[w] &= marks_[w] - 1) {
      const std::size_t slot = 64 * w + static_cast<std::size_t>(lowest_bit(marks_[w]));
      const Interval next = held(by_address_[slot].row);
      for (; late != unsorted_.end() && late->key < next.lower; ++late) append(held(late->row));
      append(next);
    }
  }
  for (; late != unsorted_.end(); ++late) append(held(late->row));
  for (std::size_t i = begin; i < intervals->size(); ++i) {
    MEMPLAN_ASSERT(i == begin || (*intervals)[i - 1].upper < (*intervals)[i].lower);
  }
  return (last - first) / kEntriesPerStep;
}

}  // namespace memplan
