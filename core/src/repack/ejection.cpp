#include "repack/ejection.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "util/invariants.h"

namespace memplan::repack {

namespace {

constexpr Bytes kFinest = 1 << 16;  // units of size to a limit
constexpr std::int64_t kMostFailures = 1 << 10;

// A cost counts for at least so many parts, and for up to so many more by chance.
constexpr std::int64_t kSurely = 2;
constexpr std::int64_t kNoise = 8;

// So many of the places above something are tried; trying all of them is no better (measured).
constexpr std::size_t kCandidates = 16;

constexpr std::int64_t kStays = std::int64_t{1} << 40;  // the weight of what cannot be thrown out

}  // namespace

Ejection::Ejection(Arena& arena, std::uint64_t seed, Stopper& stopper)
    : arena_(arena),
      random_(seed),
      stopper_(stopper),
      failures_(static_cast<std::size_t>(arena.slot_count()), 1) {}

bool Ejection::insert(std::vector<Slot> unplaced, Bytes limit, std::int64_t steps,
                      std::int64_t last_look) {
  while (!unplaced.empty()) {
    if (steps_ >= steps || arena_.looks() >= last_look || stopper_.expired()) return false;
    ++steps_;
    const Slot slot = unplaced.back();
    unplaced.pop_back();
    Bytes offset = arena_.lowest_place(slot, limit);
    if (offset == kNoOffset) {
      failures_[slot] = std::min(failures_[slot] + 1, kMostFailures);
      bar(slot, limit);
      offset = cheapest_place(slot, limit - arena_.size(slot));
      if (offset == kNoOffset) return false;
      ejected_.clear();
      arena_.in_the_way(slot, offset, &ejected_);
      for (const Slot other : ejected_) MEMPLAN_ASSERT(!arena_.is_pinned(other));
      for (const Slot other : ejected_) arena_.displace(other);
      // The largest is on top, so that it is the next to be placed.
      std::sort(ejected_.begin(), ejected_.end(), [this](Slot x, Slot y) {
        return arena_.size(x) != arena_.size(y) ? arena_.size(x) < arena_.size(y) : x > y;
      });
      unplaced.insert(unplaced.end(), ejected_.begin(), ejected_.end());
    }
    arena_.place(slot, offset);
  }
  return true;
}

void Ejection::bar(Slot slot, Bytes limit) {
  const Bytes size = arena_.size(slot);
  const Bytes unit = std::max<Bytes>(1, limit / kFinest);
  bars_.clear();
  arena_.meet(slot, [&](const Tenant& tenant) {
    const std::int64_t weight =
        arena_.is_pinned(tenant.slot)
            ? kStays
            : failures_[tenant.slot] * (1 + (tenant.upper - tenant.lower) / unit);
    bars_.push_back({tenant.lower - size, tenant.upper, weight});
  });
  for (const Reserved& r : arena_.reserved()) bars_.push_back({r.lower - size, r.upper, kStays});
}

// Chooses among some offsets just above something one that throws out little.
Bytes Ejection::cheapest_place(Slot slot, Bytes top) {
  if (top < 0) return kNoOffset;
  const Bytes alignment = arena_.alignment(slot);
  Bytes best = kNoOffset;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const auto try_at = [&](Bytes offset) {
    if (offset > top) return;
    std::int64_t cost = 0;
    for (const Bar& bar : bars_) {
      const bool over = (bar.lower < offset) & (offset < bar.upper);  // no branch: either is likely
      cost += bar.weight & -static_cast<std::int64_t>(over);
    }
    MEMPLAN_ASSERT(offset % alignment == 0 && cost >= 0);
    if (cost >= kStays) return;
    cost *= kSurely + static_cast<std::int64_t>(random_.below(kNoise));
    if (cost >= least) return;
    best = offset;
    least = cost;
  };
  try_at(0);
  if (bars_.size() <= kCandidates) {
    for (const Bar& bar : bars_) try_at(align_up(bar.upper, alignment));
    return best;
  }
  for (std::size_t k = 0; k < kCandidates; ++k) {
    try_at(align_up(bars_[random_.index(bars_.size())].upper, alignment));
  }
  return best;
}

}  // namespace memplan::repack
