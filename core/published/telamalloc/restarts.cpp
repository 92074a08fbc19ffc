#include "published/telamalloc/restarts.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "util/invariants.h"
#include "util/luby.h"

namespace memplan {

namespace {

constexpr std::int64_t kLookEvery = 64;  // steps, where invariants are checked
constexpr std::size_t kMost = 2;         // candidates at a point, by lists
constexpr std::uint64_t kHeaviest = 80;  // per cent of points, by lists
// Each dead end weighs 1 % more than the one before it. What is placed shares in it by a power of
// two, so that no machine can round a product and a sum at once, and get another weight.
constexpr double kGrowth = 1.01;
constexpr double kShareOfPlaced = 0.25;
constexpr double kLargestWeight = 1e100;
// The shortest restart: enough to place all four times, and some more.
constexpr std::int64_t kPlacings = 4;
constexpr std::int64_t kShortest = 50;

}  // namespace

Restarts::Restarts(const Problem& problem, const Items& items, const Adjacency& adjacent,
                   const Phases& phases, Stopper& stopper)
    : phases_(phases),
      stopper_(stopper),
      ranges_(items, adjacent, stopper),
      culprits_(items, ranges_),
      unplaced_(problem, items, phases),
      room_(items, ranges_),
      weight_(items.size.size(), 0) {
  area_.reserve(items.size.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    area_.push_back(static_cast<double>(items.size[i]) * lifetime_of(problem, items.buffer[i]));
  }
  ranges_.settle();
}

void Restarts::begin(const Phases::Subproblem& part) {
  if (part_ != nullptr && depth_ > 0) retreat_to(0);
  part_ = &part;
  if (points_.size() <= static_cast<std::size_t>(part.size())) {
    points_.resize(static_cast<std::size_t>(part.size()) + 1);
  }
  restarts_ = 0;
  restart();
}

void Restarts::restart() {
  if (depth_ > 0) retreat_to(0);
  const std::int64_t unit = kPlacings * static_cast<std::int64_t>(part_->size()) + kShortest;
  end_ = steps_ + unit * luby(restarts_ / 2);
  style_ = restarts_ % 2 == 0 ? Style::kLowest : Style::kLists;
  random_ = Random(static_cast<std::uint64_t>(++restarts_));
  open();
}

bool Restarts::run(std::int64_t limit) {
  while (depth_ < part_->size()) {
    if (steps_ >= limit || stopper_.expired()) return false;
    MEMPLAN_ASSERT(steps_ % kLookEvery != 0 || check_invariants());
    if (steps_ >= end_) restart();
    const ItemIdx i = next();
    if (i != kNoItem) {
      advance(i);
    } else if (!go_back()) {
      restart();  // each has at least one candidate at the root, and so a step
    }
  }
  return true;
}

bool Restarts::heavier(ItemIdx a, ItemIdx b) const {
  if (weight_[a] != weight_[b]) return weight_[a] > weight_[b];
  return area_[a] != area_[b] ? area_[a] > area_[b] : a < b;
}

void Restarts::open() {
  Point& point = points_[depth_];
  point.candidates.clear();
  point.culprits.clear();
  point.tried = 0;
  if (depth_ == part_->size()) return;
  if (style_ == Style::kLowest) {
    list_lowest();
  } else {
    if (random_.below(100) < kHeaviest) list_heaviest();
    list_as_published();
  }
}

void Restarts::list_heaviest() {
  ItemIdx best = kNoItem;
  for (std::int32_t k = part_->begin; k < part_->end; ++k) {
    const ItemIdx i = phases_.items[k];
    if (!ranges_.placed(i) && (best == kNoItem || heavier(i, best))) best = i;
  }
  points_[depth_].candidates.push_back(best);
}

void Restarts::list_as_published() {
  std::vector<ItemIdx>& list = points_[depth_].candidates;
  const auto add = [&](std::int32_t phase) {
    for (const Unplaced::Order order :
         {Unplaced::kLongest, Unplaced::kLargest, Unplaced::kLargestArea}) {
      const ItemIdx i = unplaced_.first(order, phase);
      if (list.size() < kMost && std::find(list.begin(), list.end(), i) == list.end()) {
        list.push_back(i);
      }
    }
  };
  const std::int32_t home = depth_ > 0 ? unplaced_.phase_of(ranges_.item_at(depth_ - 1)) : -1;
  if (home >= 0 && unplaced_.left(home) > 0) add(home);
  for (std::int32_t phase = part_->phase_begin; phase < part_->phase_end && list.size() < kMost;
       ++phase) {
    if (phase != home && unplaced_.left(phase) > 0) add(phase);
  }
}

void Restarts::list_lowest() {
  std::vector<ItemIdx>& list = points_[depth_].candidates;
  if (depth_ > 0) {
    const Bytes at = ranges_.lower(ranges_.item_at(depth_ - 1));
    for (const ItemIdx i : points_[depth_ - 1].candidates) {
      if (!ranges_.placed(i) && ranges_.lower(i) == at) list.push_back(i);
    }
    if (!list.empty()) return;
  }
  Bytes least = std::numeric_limits<Bytes>::max();
  for (std::int32_t k = part_->begin; k < part_->end; ++k) {
    const ItemIdx i = phases_.items[k];
    if (ranges_.placed(i) || ranges_.lower(i) > least) continue;
    if (ranges_.lower(i) < least) list.clear();
    least = ranges_.lower(i);
    list.push_back(i);
  }
}

ItemIdx Restarts::next() {
  Point& point = points_[depth_];
  if (point.tried == point.candidates.size()) return kNoItem;
  if (style_ == Style::kLowest) {
    const auto first = point.candidates.begin() + static_cast<std::ptrdiff_t>(point.tried);
    auto best = first;
    for (auto at = first; at != point.candidates.end(); ++at) {
      if (heavier(*at, *best)) best = at;
    }
    std::iter_swap(first, best);
  }
  return point.candidates[point.tried++];
}

void Restarts::advance(ItemIdx i) {
  ++steps_;
  if (ranges_.place(i, ranges_.lower(i))) {
    room_.place(i);
    const SectionIdx full = style_ == Style::kLowest ? room_.overfull(i) : -1;
    if (full < 0) {
      unplaced_.remove(i);
      ++depth_;
      open();
      return;
    }
    ++minor_;
    blame_section(full);
    room_.take_back(i);
  } else if (!stopper_.stopped()) {
    ++minor_;
    blame_pair();
  }
  ranges_.take_back(depth_);
}

// The failure of the candidate: neither of two items fits below the other.
void Restarts::blame_pair() {
  const std::vector<std::int32_t>& levels = culprits_.of_dead_end();
  const auto [i, j] = ranges_.dead_end();
  for (const ItemIdx each : {i, j}) {
    if (!ranges_.placed(each)) weigh(each, 1);
  }
  for (const std::int32_t level : levels) weigh(ranges_.item_at(level), kShareOfPlaced);
  bump_ *= kGrowth;
  blame(levels);
}

// A section has no room. What is placed elsewhere may be at fault as well, because it keeps what is
// unplaced here high; so going back may skip solutions, which is why the other style is there.
void Restarts::blame_section(SectionIdx s) {
  levels_.clear();
  for (const ItemIdx* i = room_.begin(s); i != room_.end(s); ++i) {
    const bool placed = ranges_.placed(*i);
    weigh(*i, placed ? kShareOfPlaced : 1);
    if (placed) levels_.push_back(ranges_.level(*i));
  }
  bump_ *= kGrowth;
  std::sort(levels_.begin(), levels_.end());
  blame(levels_);
}

void Restarts::weigh(ItemIdx i, double share) {
  weight_[i] += bump_ * share;
  if (weight_[i] <= kLargestWeight) return;
  for (double& weight : weight_) weight /= kLargestWeight;
  bump_ /= kLargestWeight;
}

void Restarts::blame(const std::vector<std::int32_t>& levels) {
  std::vector<std::int32_t>& known = points_[depth_].culprits;
  merged_.clear();
  std::set_union(known.begin(), known.end(), levels.begin(),
                 std::lower_bound(levels.begin(), levels.end(), depth_),
                 std::back_inserter(merged_));
  known.swap(merged_);
}

bool Restarts::go_back() {
  if (depth_ == 0) return false;
  ++major_;
  const Point& failed = points_[depth_];
  const std::int32_t level = failed.culprits.empty() ? depth_ - 1 : failed.culprits.back();
  Point& above = points_[level];
  retreat_to(level);
  blame(failed.culprits);
  if (style_ == Style::kLists) hoist(failed, &above);
  return true;
}

// What is to be tried at the failed point comes next at the one above it (section 5.4).
void Restarts::hoist(const Point& failed, Point* above) {
  std::vector<ItemIdx>& list = above->candidates;
  waiting_.assign(list.begin() + static_cast<std::ptrdiff_t>(above->tried), list.end());
  list.resize(above->tried);
  const std::vector<ItemIdx>* const sources[] = {&failed.candidates, &waiting_};
  for (const auto* source : sources) {
    for (const ItemIdx i : *source) {
      const bool known = std::find(list.begin(), list.end(), i) != list.end();
      if (list.size() < kMost && !known) list.push_back(i);
    }
  }
}

void Restarts::retreat_to(std::int32_t level) {
  for (std::int32_t l = depth_ - 1; l >= level; --l) {
    const ItemIdx i = ranges_.item_at(l);
    unplaced_.restore(i);
    room_.take_back(i);
  }
  ranges_.take_back(level);
  depth_ = level;
}

bool Restarts::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(depth_ == ranges_.levels());
  return unplaced_.check_invariants() && room_.check_invariants() && ranges_.check_invariants();
}

}  // namespace memplan
