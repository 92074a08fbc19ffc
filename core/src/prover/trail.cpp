#include "prover/trail.h"

#include <algorithm>
#include <limits>

#include "util/invariants.h"

namespace memplan::prover {

// Every half begins with an entry of its own, so that walks back along a half end by themselves.
Trail::Trail(const Model& model, const Halt& halt) : model_(model) {
  relation_.assign(static_cast<std::size_t>(model.items) * model.items, kApart);
  for (int i = 0; i < model.items; ++i) {
    bound_.push_back(model.floor[i]);
    bound_.push_back(-(model.latest(i, model.world->capacity) + model.size[i]));
  }
  bound_.resize(model.halves(), 0);
  fact_ = bound_;
  last_.resize(bound_.size());
  entries_.reserve(bound_.size());
  for (Half h = 0; h < model.halves(); ++h) {
    if (halt.expired()) return;
    last_[h] = h;
    entries_.push_back({bound_[h], h, -1, 0, {}});
    if (!model.is_item(h)) relate(h, kOpen, kOpen);
  }
}

bool Trail::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(size() >= model_.halves());
  std::vector<std::int32_t> last(last_.size(), -1);
  std::vector<Bytes> fact(fact_.size(), 0);
  for (std::int32_t p = 0; p < size(); ++p) {
    const Entry& entry = entries_[p];
    MEMPLAN_ASSERT(p >= model_.halves() || entry.half == p);
    MEMPLAN_ASSERT(entry.previous == last[entry.half]);
    MEMPLAN_ASSERT(entry.previous < 0 || entries_[entry.previous].value < entry.value);
    MEMPLAN_ASSERT(p == 0 || entries_[p - 1].level <= entry.level);
    MEMPLAN_ASSERT(entry.level <= level());
    MEMPLAN_ASSERT(entry.level == 0 || levels_[entry.level - 1].entries <= p);
    MEMPLAN_ASSERT(entry.level == level() || p < levels_[entry.level].entries);
    MEMPLAN_ASSERT(!model_.is_item(entry.half) ||
                   model_.round(entry.half, entry.value) == entry.value);
    last[entry.half] = p;
    if (entry.level == 0) fact[entry.half] = entry.value;
  }
  MEMPLAN_ASSERT(last == last_ && fact == fact_);
  for (std::size_t h = 0; h < bound_.size(); ++h)
    MEMPLAN_ASSERT(bound_[h] == entries_[last[h]].value);
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    MEMPLAN_ASSERT(levels_[l].windows <= static_cast<std::int32_t>(windows_.size()));
    MEMPLAN_ASSERT(l == 0 || levels_[l - 1].windows <= levels_[l].windows);
  }
  for (Half a = 2 * model_.items; a < model_.halves(); ++a) {
    const std::int8_t relation = relations(model_.tail_of(a))[model_.head_of(a)];
    if (crossed(a)) continue;
    MEMPLAN_ASSERT(relation == (bound_[a] > 0 ? kBelow : bound_[a ^ 1] > 0 ? kAbove : kOpen));
  }
  return true;
}
void Trail::measure() {
  Bytes first = std::numeric_limits<Bytes>::max(), last = 0;
  for (int i = 0; i < model_.items; ++i) {
    first = std::min(first, fact_[2 * i]);
    last = std::max(last, -fact_[2 * i + 1]);
  }
  room_ = last - first;
}

}  // namespace memplan::prover
