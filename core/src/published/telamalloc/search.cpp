#include "published/telamalloc/search.h"

#include <algorithm>
#include <iterator>

#include "util/invariants.h"

namespace memplan {

namespace {

constexpr std::int64_t kCheckEvery = 64;  // steps, where invariants are checked
// One heuristic goes without whatever speaks of several.
TelamallocOptions consistent(TelamallocOptions options) {
  if (options.select != "tela") {
    options.phases = options.culprits = options.hoisting = options.stuck_rule = false;
  }
  return options;
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
  // Who conflicts with nobody lies as low as it can, with nothing to search for.
  steps_ = items.count() - static_cast<std::int64_t>(phases_.items.size());
}

std::vector<ItemIdx> TelamallocSearch::refutation() {
  culprits_.of_dead_end();
  return culprits_.involved();
}

void TelamallocSearch::follow(BacktrackPolicy* policy, std::uint64_t seed) {
  policy_ = candidates_.one_heuristic() ? nullptr : policy;
  candidates_.draw(seed);
}

TelamallocSearch::Verdict TelamallocSearch::run(const Phases::Subproblem& part,
                                                std::int64_t limit) {
  begin(part);
  const Verdict verdict = search(part, limit);
  if (verdict == Verdict::kSolved || depth_ == 0) return verdict;
  for (std::int32_t level = depth_ - 1; level >= 0; --level) unplaced_.restore(item_at(level));
  ranges_.take_back(base_);
  return verdict;
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
TelamallocSearch::Verdict TelamallocSearch::search(const Phases::Subproblem& part,
                                                   std::int64_t limit) {
  candidates_.narrow();
  open();
  while (depth_ < part.size()) {
    if (steps_ >= limit || stopper_.expired()) return Verdict::kCutShort;
    MEMPLAN_ASSERT(steps_ % kCheckEvery != 0 || check_invariants());
    const ItemIdx i = candidates_.next(&points_[depth_]);
    MEMPLAN_ASSERT(i == kNoItem || !ranges_.placed(i));
    if (i != kNoItem) {
      advance(i);
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
  if (policy_ == nullptr) return;
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

// What fails at this point does so because of these levels, and the candidate's own.
void TelamallocSearch::blame(const std::vector<std::int32_t>& levels) {
  std::vector<std::int32_t>& known = points_[depth_].culprits;
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

}  // namespace memplan
