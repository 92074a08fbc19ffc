#include "published/rectangles/distances.h"

#include "util/invariants.h"

namespace memplan {

namespace {
constexpr ItemIdx kMostItems = 4096;  // 128 MiB
}

const char* Distances::build(const Items& items, Stopper& stopper) {
  if (items.count() > kMostItems) return "too many buffers for a matrix of distances";
  count_ = items.size.size();
  lower_ = items.earliest;
  upper_ = items.latest;
  matrix_.reserve(count_ * count_);
  for (ItemIdx i = 0; i < items.count(); ++i) {
    if (stopper.look()) return "the budget ran out";
    matrix_.resize(matrix_.size() + count_, kNoPath);
    matrix_[at(i, i)] = 0;
  }
  return nullptr;
}

// A new longest path is one to `from`, the new arc, and one on from `to`.
//
// No sum overflows: a path is at most the difference of two legal offsets, so 2^62 less a size, and
// the new ones are too, unless the way back contradicts the arc.
bool Distances::add(ItemIdx from, ItemIdx to, Bytes bytes) {
  MEMPLAN_ASSERT(bytes > 0 && from != to);
  if (least(to, from) > -bytes) return false;
  if (least(from, to) >= bytes) return true;
  targets_.clear();
  const auto count = static_cast<ItemIdx>(count_);
  for (ItemIdx v = 0; v < count; ++v) {
    if (path(to, v) >= 0 && bytes + path(to, v) > path(from, v)) targets_.push_back(v);
  }
  for (ItemIdx u = 0; u < count; ++u) {
    if (path(u, from) < 0) continue;
    const Bytes reach = path(u, from) + bytes;
    if (reach <= path(u, to)) continue;
    for (const ItemIdx v : targets_) {
      if (reach + path(to, v) > path(u, v)) set(at(u, v), reach + path(to, v));
    }
  }
  return raise(to, lower_[from] + bytes) && sink(from, upper_[to] - bytes);
}

bool Distances::raise(ItemIdx i, Bytes bytes) {
  if (bytes > upper_[i]) return false;
  if (bytes <= lower_[i]) return true;
  for (ItemIdx v = 0; v < static_cast<ItemIdx>(count_); ++v) {
    if (path(i, v) < 0 || bytes + path(i, v) <= lower_[v]) continue;
    set(count_ * count_ + static_cast<std::size_t>(v), bytes + path(i, v));
  }
  return true;
}

bool Distances::sink(ItemIdx i, Bytes bytes) {
  if (bytes < lower_[i]) return false;
  if (bytes >= upper_[i]) return true;
  for (ItemIdx u = 0; u < static_cast<ItemIdx>(count_); ++u) {
    if (path(u, i) < 0 || bytes - path(u, i) >= upper_[u]) continue;
    set(count_ * count_ + count_ + static_cast<std::size_t>(u), bytes - path(u, i));
  }
  return true;
}

bool Distances::check_invariants() const {
  const auto count = static_cast<ItemIdx>(count_);
  for (ItemIdx u = 0; u < count; ++u) {
    MEMPLAN_ASSERT(lower_[u] <= upper_[u] && path(u, u) == 0);
    for (ItemIdx v = 0; v < count; ++v) {
      if (path(u, v) < 0) continue;
      MEMPLAN_ASSERT(u == v || path(v, u) < 0);  // no two lie below each other
      MEMPLAN_ASSERT(lower_[v] >= lower_[u] + path(u, v) && upper_[u] <= upper_[v] - path(u, v));
      for (ItemIdx w = 0; w < count; ++w) {
        MEMPLAN_ASSERT(path(v, w) < 0 || path(u, w) >= path(u, v) + path(v, w));
      }
    }
  }
  return true;
}
Bytes& Distances::cell(std::size_t place) {
  if (place < matrix_.size()) return matrix_[place];
  place -= matrix_.size();
  return place < count_ ? lower_[place] : upper_[place - count_];
}

void Distances::set(std::size_t place, Bytes bytes) {
  trail_.push_back({static_cast<std::uint32_t>(place), cell(place)});
  MEMPLAN_ASSERT(place < count_ * count_ + count_ ? cell(place) < bytes : cell(place) > bytes);
  cell(place) = bytes;
}

Distances::Change Distances::change(std::size_t k) const {
  const std::size_t place = trail_[k].place;
  if (place < matrix_.size()) {
    return {static_cast<ItemIdx>(place / count_), static_cast<ItemIdx>(place % count_)};
  }
  const auto i = static_cast<ItemIdx>((place - matrix_.size()) % count_);
  return {i, i};
}

void Distances::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) cell(trail_.back().place) = trail_.back().bytes;
}

}  // namespace memplan
