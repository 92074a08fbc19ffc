// Major backtracks (source 001, section 5.4), and the choice of a learned policy (section 6).
#include <algorithm>
#include <iterator>

#include "published/telamalloc/search.h"
#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::int64_t kPatience = 100;  // backtracks in one subtree

// The deepest level of the range that this one is in: 0-4, 5-8, 9-16, 17-32, ...
std::int32_t end_of_range(std::int32_t level) {
  std::int32_t end = 4;
  while (end < level) end *= 2;
  return end;
}

}  // namespace

// The point at hand has no candidates left. False if there is nowhere to go back to.
bool TelamallocSearch::go_back() {
  if (depth_ == 0) return false;
  DecisionPoint& failed = points_[depth_];
  if (failed.all) {  // that none fits is a minor backtrack (6.5)
    ++minor_;
    retreat_to(depth_ - 1);
    return true;
  }
  ++major_;
  for (const std::int32_t level : failed.culprits) ++times_culprit_[item_at(level)];
  const int choice = policy_ == nullptr ? BacktrackPolicy::kByRule : ask_policy();
  if (choice == BacktrackPolicy::kTryAll) {
    candidates_.list_all(&failed);
    return true;
  }
  if (choice == BacktrackPolicy::kByRule) {
    retreat_to(level_by_rule());
    return true;
  }
  MEMPLAN_ASSERT(choice >= 0 && static_cast<std::size_t>(choice) < targets_.size());
  retreat_to(targets_[choice].level);
  // What may be solvable must not be left for want of candidates.
  if (!candidates_.has_more(points_[depth_])) candidates_.list_all(&points_[depth_]);
  return true;
}

std::int32_t TelamallocSearch::level_by_rule() {
  const std::vector<std::int32_t>& culprits = points_[depth_].culprits;
  // Where nothing is to blame, all dead ends are for the offsets that the candidates have here.
  const bool known = options_.culprits && !culprits.empty();
  const std::int32_t level = known ? culprits.back() : depth_ - 1;
  return options_.stuck_rule ? leave_stuck_subtree(level) : level;
}

// Section 5.4: "to the lowest such point" of those with too many backtracks below them. The root is
// always one of them, where few candidates are; leaving only the deepest would give the next
// subtree beside it as long, and so on. Between them, in turn, to a half and a quarter of its
// depth.
std::int32_t TelamallocSearch::leave_stuck_subtree(std::int32_t level) {
  const auto stuck = [this](std::int32_t l) {
    return backtracks() - points_[l].patient_since > kPatience;
  };
  if (!stuck(0)) return level;  // no tree has had more than the whole
  std::int32_t deepest = level;
  while (!stuck(deepest)) --deepest;
  std::int32_t target = deepest / (++escapes_ % 2 != 0 ? 2 : 4);
  while (target < level && !candidates_.has_more(points_[target])) ++target;
  for (std::int32_t l = 0; l <= target; ++l) points_[l].patient_since = backtracks();
  return target;
}

void TelamallocSearch::retreat_to(std::int32_t level) {
  MEMPLAN_ASSERT(0 <= level && level < depth_);
  const DecisionPoint& failed = points_[depth_];
  DecisionPoint& above = points_[level];
  for (std::int32_t l = depth_ - 1; l >= level; --l) unplaced_.restore(item_at(l));
  ranges_.take_back(base_ + level);
  if (policy_ != nullptr) path_.resize(static_cast<std::size_t>(level));
  ++above.returns;
  depth_ = level;
  for (const std::int32_t culprit : failed.culprits) culprit_levels_.push_back(culprit + base_);
  blame(culprit_levels_);
  culprit_levels_.clear();
  if (options_.hoisting) candidates_.hoist(failed, &above);
}

int TelamallocSearch::ask_policy() {
  targets_.clear();
  const std::vector<std::int32_t>& culprits = points_[depth_].culprits;
  auto next = culprits.rbegin();
  for (std::int32_t end = end_of_range(depth_ - 1); end > 0; end = end > 4 ? end / 2 : 0) {
    const std::int32_t begin = end > 4 ? end / 2 + 1 : 0;
    if (next == culprits.rend() || *next < begin) add_target(std::min(end, depth_ - 1));
    for (; next != culprits.rend() && *next >= begin; ++next) add_target(*next);
  }
  MEMPLAN_ASSERT(!targets_.empty() && next == culprits.rend());
  return policy_->choose({items_.capacity, part_, path_, targets_});
}

void TelamallocSearch::add_target(std::int32_t level) {
  const DecisionPoint& point = points_[level];
  const ItemIdx i = item_at(level);
  const BufferIdx b = items_.buffer[i];
  const auto capacity = static_cast<float>(items_.capacity);
  const bool same_phase = unplaced_.phase_of(i) == unplaced_.phase_of(item_at(depth_ - 1));
  BacktrackTarget target;
  target.level = level;
  auto& features = target.features;
  features[kSizeFeature] = static_cast<float>(items_.size[i]) / capacity;
  features[kLifetimeFeature] =
      static_cast<float>(lifetime_of(problem_, b)) / static_cast<float>(part_length_);
  features[kContentionFeature] = static_cast<float>(phases_.contention[i]) / capacity;
  features[kLevelFeature] = static_cast<float>(level);
  features[kCulpritFeature] = static_cast<float>(times_culprit_[i]);
  features[kReturnsFeature] = static_cast<float>(point.returns);
  features[kTreeReturnsFeature] = static_cast<float>(backtracks() - point.born);
  features[kSamePhaseFeature] = same_phase ? 1.0F : 0.0F;
  features[kBacktracksFeature] = static_cast<float>(backtracks());
  targets_.push_back(target);
}

}  // namespace memplan
