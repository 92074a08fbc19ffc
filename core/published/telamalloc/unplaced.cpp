#include "published/telamalloc/unplaced.h"

#include <algorithm>
#include <numeric>

#include "util/invariants.h"

namespace memplan {

namespace {

// Columns of the three heuristics of section 5.1. Products may be beyond 2^62, and are only
// compared.
std::vector<double> keys(const Problem& problem, const Items& items, Unplaced::Order order) {
  std::vector<double> key;
  key.reserve(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    const BufferIdx b = items.buffer[i];
    const double lifetime = lifetime_of(problem, b);
    const auto size = static_cast<double>(items.size[i]);
    key.push_back(order == Unplaced::kLongest   ? lifetime
                  : order == Unplaced::kLargest ? size
                                                : size * lifetime);
  }
  return key;
}

}  // namespace

Unplaced::Unplaced(const Problem& problem, const Items& items, const Phases& phases)
    : count_(items.count()), phase_of_(phases.phase_of) {
  const std::vector<double> area = keys(problem, items, kLargestArea);
  std::vector<ItemIdx> sorted;
  for (int k = 0; k < kOrders; ++k) {
    const std::vector<double> key = keys(problem, items, static_cast<Order>(k));
    sorted = phases.items;
    std::sort(sorted.begin(), sorted.end(), [&](ItemIdx a, ItemIdx b) {
      if (key[a] != key[b]) return key[a] > key[b];
      return area[a] != area[b] ? area[a] > area[b] : a < b;
    });
    next_[k].resize(static_cast<std::size_t>(count_ + phases.count));
    std::iota(next_[k].begin(), next_[k].end(), 0);
    previous_[k] = next_[k];
    for (const ItemIdx i : sorted) {
      const ItemIdx at = head(phase_of_[i]), last = previous_[k][at];
      next_[k][last] = previous_[k][at] = i;
      next_[k][i] = at;
      previous_[k][i] = last;
    }
  }
  left_.assign(static_cast<std::size_t>(phases.count), 0);
  for (const ItemIdx i : phases.items) ++left_[phase_of_[i]];
  for (std::int32_t phase = 0; phase < phases.count; ++phase) {
    next_phase_.push_back(phase + 1 < phases.count ? phase + 1 : -1);
    previous_phase_.push_back(phase - 1);
  }
  next_phase_.push_back(0);
}

bool Unplaced::check_invariants() const {
  if (!kAssertions) return true;
  const auto phases = static_cast<std::int32_t>(left_.size());
  std::int32_t listed = 0;
  for (std::int32_t phase = first_phase(), last = -1; phase >= 0; phase = phase_after(phase)) {
    MEMPLAN_ASSERT(last < phase && phase < phases && left_[phase] > 0);
    MEMPLAN_ASSERT(previous_phase_[phase] == last);
    last = phase;
    ++listed;
  }
  for (std::int32_t phase = 0; phase < phases; ++phase) {
    listed -= left_[phase] > 0 ? 1 : 0;
    for (int k = 0; k < kOrders; ++k) {
      std::int32_t length = 0;
      ItemIdx at = head(phase);
      do {
        MEMPLAN_ASSERT(previous_[k][next_[k][at]] == at);
        at = next_[k][at];
        MEMPLAN_ASSERT(at >= count_ || phase_of_[at] == phase);
        MEMPLAN_ASSERT(++length <= left_[phase] + 1);
      } while (at != head(phase));
      MEMPLAN_ASSERT(length == left_[phase] + 1);
    }
  }
  MEMPLAN_ASSERT(listed == 0);
  return true;
}
void Unplaced::remove(ItemIdx i) {
  MEMPLAN_ASSERT(next_[0][previous_[0][i]] == i && previous_[0][next_[0][i]] == i);
  for (int k = 0; k < kOrders; ++k) {
    next_[k][previous_[k][i]] = next_[k][i];
    previous_[k][next_[k][i]] = previous_[k][i];
  }
  const std::int32_t phase = phase_of_[i];
  MEMPLAN_ASSERT(left_[phase] > 0);
  if (--left_[phase] > 0) return;
  const std::int32_t previous = previous_phase_[phase], next = next_phase_[phase];
  (previous < 0 ? next_phase_.back() : next_phase_[previous]) = next;
  if (next >= 0) previous_phase_[next] = previous;
}

void Unplaced::restore(ItemIdx i) {
  // The item must be the last that was unlinked, since its neighbours are linked with each other
  // now.
  MEMPLAN_ASSERT(next_[0][previous_[0][i]] == next_[0][i]);
  for (int k = 0; k < kOrders; ++k) {
    next_[k][previous_[k][i]] = i;
    previous_[k][next_[k][i]] = i;
  }
  const std::int32_t phase = phase_of_[i];
  if (left_[phase]++ > 0) return;
  const std::int32_t previous = previous_phase_[phase], next = next_phase_[phase];
  (previous < 0 ? next_phase_.back() : next_phase_[previous]) = phase;
  if (next >= 0) previous_phase_[next] = phase;
}

}  // namespace memplan
