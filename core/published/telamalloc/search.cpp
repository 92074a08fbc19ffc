#include "published/telamalloc/search.h"

#include <algorithm>
#include <iterator>

#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::int64_t kCheckEvery = 64;  // steps, where invariants are checked
// A single heuristic turns off the options that need several, and is the same as published.
TelamallocOptions consistent(TelamallocOptions options) {
  if (options.select != "tela") {
    options.phases = options.culprits = options.hoisting = options.stuck_rule = false;
    options.published = false;
  }
  return options;
}

constexpr std::int64_t kSubtreePatience = 100;  // backtracks in one subtree

// The deepest level of the range that this one is in: 0-4, 5-8, 9-16, 17-32, ...
std::int32_t end_of_range(std::int32_t level) {
  std::int32_t end = 4;
  while (end < level) end *= 2;
  return end;
}

}  // namespace

TelamallocSearch::TelamallocSearch(const Problem& problem, const Items& items,
                                   const Adjacency& adjacent, const TelamallocOptions& options,
                                   BacktrackPolicy* policy, Stopper& stopper)
    : problem_(problem),
      items_(items),
      options_(consistent(options)),
      policy_(policy),
      stopper_(stopper),
      phases_(make_phases(problem, items, adjacent, options_.subproblems, options_.phases)),
      ranges_(items, adjacent, stopper),
      culprits_(items, ranges_),
      unplaced_(problem, items, phases_),
      candidates_(options_, unplaced_, ranges_),
      times_culprit_(items.size.size(), 0) {
  if (candidates_.one_heuristic()) policy_ = nullptr;
  // An item that conflicts with none lies as low as it can, without a search.
  steps_ = items.count() - static_cast<std::int64_t>(phases_.items.size());
}

std::vector<ItemIdx> TelamallocSearch::refutation() {
  culprits_.of_dead_end();
  return culprits_.involved();
}

TelamallocSearch::Verdict TelamallocSearch::run(const Phases::Subproblem& part,
                                                std::int64_t limit) {
  begin(part);
  const Verdict verdict = go_on(part, limit);
  if (verdict != Verdict::kSolved) give_up();
  return verdict;
}

void TelamallocSearch::give_up() {
  if (depth_ == 0) return;
  for (std::int32_t level = depth_ - 1; level >= 0; --level) unplaced_.restore(item_at(level));
  ranges_.take_back(base_);
  depth_ = 0;
}

bool TelamallocSearch::adopt(const Phases::Subproblem& part, const std::vector<Bytes>& offsets) {
  give_up();
  for (std::int32_t k = part.begin; k < part.end; ++k) {
    const ItemIdx i = phases_.items[k];
    if (!ranges_.place(i, offsets[i])) return false;
    unplaced_.remove(i);
    ++depth_;
  }
  return true;
}

bool TelamallocSearch::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(base_ + depth_ == ranges_.levels() && minor_ >= 0 && major_ >= 0);
  MEMPLAN_ASSERT(static_cast<std::size_t>(depth_) < points_.size());
  for (std::int32_t level = 0; level <= depth_; ++level) {
    const DecisionPoint& point = points_[level];
    MEMPLAN_ASSERT(point.tried <= point.candidates.size() && point.born <= backtracks());
    MEMPLAN_ASSERT(std::adjacent_find(point.culprits.begin(), point.culprits.end(),
                                      std::greater_equal<>()) == point.culprits.end());
    MEMPLAN_ASSERT(point.culprits.empty() ||
                   (point.culprits.front() >= 0 && point.culprits.back() < level));
  }
  ItemIdx left = 0;
  for (const ItemIdx i : phases_.items) left += ranges_.placed(i) ? 0 : 1;
  MEMPLAN_ASSERT(unplaced_.check_invariants() && unplaced_.left() == left);
  MEMPLAN_ASSERT(policy_ == nullptr || path_.size() == static_cast<std::size_t>(depth_));
  return ranges_.check_invariants();
}

TelamallocSearch::Verdict TelamallocSearch::go_on(const Phases::Subproblem& part,
                                                  std::int64_t limit) {
  while (depth_ < part.size()) {
    if (steps_ >= limit || stopper_.expired()) return Verdict::kCutShort;
    MEMPLAN_ASSERT(steps_ % kCheckEvery != 0 || check_invariants());
    const ItemIdx i = candidates_.next(&points_[depth_]);
    MEMPLAN_ASSERT(i == kNoItem || !ranges_.placed(i));
    if (i != kNoItem) {
      advance(i);
      // As published, the backtrack that is one too many may also be a minor one.
      if (options_.published && options_.stuck_rule && policy_ == nullptr) leave_if_stuck();
    } else if (!go_back()) {
      if (!candidates_.widen(static_cast<std::size_t>(part.size()))) return Verdict::kExhausted;
      open();
    }
  }
  if (policy_ != nullptr) policy_->solved(part_, path_);
  return Verdict::kSolved;
}

void TelamallocSearch::begin(const Phases::Subproblem& part) {
  base_ = ranges_.levels();
  depth_ = 0;
  escapes_ = 0;
  candidates_.limit_phases(part.phase_end);
  const auto deepest = static_cast<std::size_t>(part.size());
  if (points_.size() <= deepest) points_.resize(deepest + 1);
  if (policy_ != nullptr) tell_policy(part);
  candidates_.narrow();
  open();
}

void TelamallocSearch::tell_policy(const Phases::Subproblem& part) {
  path_.clear();
  part_.clear();
  Time start = problem_.start[items_.buffer[phases_.items[part.begin]]], end = start;
  for (std::int32_t k = part.begin; k < part.end; ++k) {
    const BufferIdx b = items_.buffer[phases_.items[k]];
    part_.push_back(b);
    start = std::min(start, problem_.start[b]);
    end = std::max(end, problem_.end[b]);
  }
  part_length_ = static_cast<double>(end) - static_cast<double>(start);
}

void TelamallocSearch::open() {
  DecisionPoint& point = points_[depth_];
  candidates_.open(&point, depth_ > 0 ? unplaced_.phase_of(item_at(depth_ - 1)) : -1);
  point.culprits.clear();
  point.returns = 0;
  point.born = point.patient_since = backtracks();
}

// Places the next block, or takes a minor backtrack.
void TelamallocSearch::advance(ItemIdx i) {
  ++steps_;
  Bytes offset = ranges_.lower(i);
  if (!options_.lowest_position && !fits_on_skyline(i, &offset)) {
    ++minor_;
    return;
  }
  MEMPLAN_ASSERT(ranges_.lower(i) <= offset && offset <= ranges_.upper(i));
  if (ranges_.place(i, offset)) {
    unplaced_.remove(i);
    if (policy_ != nullptr) path_.push_back({items_.buffer[i], offset});
    ++depth_;
    open();
    return;
  }
  if (!stopper_.stopped()) {
    ++minor_;
    blame(culprits_.of_dead_end());
  }
  ranges_.take_back(base_ + depth_);
}

// Figure 8a: on top of all that is placed and overlaps it.
bool TelamallocSearch::fits_on_skyline(ItemIdx i, Bytes* offset) {
  const ItemIdx below = ranges_.highest_below(i);
  if (below == kNoItem) return true;
  const Bytes top = ranges_.lower(below) + items_.size[below];
  if (top > ranges_.upper(i)) {
    blame(culprits_.of_ceiling(i, top - 1, below));
    return false;
  }
  *offset = items_.legal_above(i, std::max(top, *offset));
  return true;
}

// The failure at this point follows from these levels, and that of the candidate.
void TelamallocSearch::blame(const std::vector<std::int32_t>& levels) {
  std::vector<std::int32_t>& known = points_[depth_].culprits;
  // The paper speaks of the reasons of one failure, which is the last one.
  if (options_.published) known.clear();
  merged_.clear();
  auto at = known.begin();
  for (const std::int32_t level : levels) {
    if (level - base_ >= depth_) break;
    while (at != known.end() && *at < level - base_) merged_.push_back(*at++);
    if (at != known.end() && *at == level - base_) ++at;
    merged_.push_back(level - base_);
  }
  merged_.insert(merged_.end(), at, known.end());
  MEMPLAN_ASSERT(merged_.empty() || merged_.back() < depth_);
  known.swap(merged_);
}

// ---- major backtracks (TelaMalloc, section 5.4), and the choice of a learned policy (section 6)

// The point at hand has no candidates left. Returns false if there is no level to go back to.
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
  // A subtree that may be solvable must not be left because its candidates ran out.
  if (!options_.published && !candidates_.has_more(points_[depth_])) {
    candidates_.list_all(&points_[depth_]);
  }
  return true;
}

std::int32_t TelamallocSearch::level_by_rule() {
  const std::vector<std::int32_t>& culprits = points_[depth_].culprits;
  // Without culprits, all dead ends follow from the offsets that the candidates have here.
  const bool known = options_.culprits && !culprits.empty();
  const std::int32_t level = known ? culprits.back() : depth_ - 1;
  return options_.stuck_rule ? leave_stuck_subtree(level) : level;
}

bool TelamallocSearch::is_stuck(std::int32_t level) const {
  return backtracks() - points_[level].patient_since > kSubtreePatience;
}

// Section 5.4: "to the lowest such point" of those with too many backtracks below them. The root is
// always one of them, where few candidates are; leaving only the deepest would give its neighbour
// as much time, and so on. So it also goes back, in turn, to a half and a quarter of the depth; as
// published, to the deepest.
std::int32_t TelamallocSearch::leave_stuck_subtree(std::int32_t level) {
  if (!is_stuck(0)) return level;  // no tree has had more than the whole
  std::int32_t deepest = level;
  while (!is_stuck(deepest)) --deepest;
  std::int32_t target = deepest;
  if (!options_.published) target /= ++escapes_ % 2 != 0 ? 2 : 4;
  while (target < level && !candidates_.has_more(points_[target])) ++target;
  for (std::int32_t l = 0; l <= target; ++l) points_[l].patient_since = backtracks();
  return target;
}

void TelamallocSearch::leave_if_stuck() {
  const std::int32_t target = leave_stuck_subtree(depth_);
  if (target < depth_) retreat_to(target);
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
