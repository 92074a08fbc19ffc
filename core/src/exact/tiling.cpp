#include "exact/tiling.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "exact/search_makers.h"
#include "exact/tiling_ways.h"
#include "util/invariants.h"

namespace memplan::exact {

namespace {

constexpr int kRepairChoices = 16;  // looked at behind a failure, the nearest first
constexpr int kRepairWays = 16;     // tried of each
constexpr int kRepairAhead = 20;    // boundaries that a change has to prove itself on
constexpr int kMaxRepairs = 1000;

std::vector<Bytes> loads(const Task& task) {
  std::vector<Bytes> change(task.sections + 1, 0);
  for (const Item<Bytes>& item : task.items) {
    change[item.first] += item.size;
    change[item.last + 1] -= item.size;
  }
  for (SectionIdx j = 1; j < task.sections; ++j) change[j] += change[j - 1];
  change.pop_back();
  return change;
}

}  // namespace

bool Tiling::applies(const Task& task) {
  if (task.restricted) return false;
  const std::vector<Bytes> load = loads(task);
  for (SectionIdx j = 1; j < task.sections; ++j) {
    if (load[j - 1] == task.ceiling && load[j] == task.ceiling) return true;
  }
  return false;
}

Tiling::Tiling(const Task& task)
    : task_(task),
      boundaries_(task.sections),
      marked_(task.items.size(), 0),
      conflict_(task.items.size(), 0),
      offsets_(task.items.size(), kNoOffset) {
  const std::vector<Bytes> load = loads(task);
  for (SectionIdx j = 0; j < task.sections; ++j) {
    if (load[j] != task.ceiling) continue;
    if (j > 0 && load[j - 1] == task.ceiling) {
      windows_.back().last = j;
    } else {
      windows_.push_back({j, j});
    }
  }
  for (const Item<Bytes>& item : task.items) {
    boundaries_[item.last].ending.push_back(item.id);
    if (item.first > 0) boundaries_[item.first - 1].beginning.push_back(item.id);
  }
  at_ = windows_[0].first;
  tree_ = PqTree(live_in(at_));
}

// Crosses boundary after boundary of a window of full sections. tree_ has all address orders of the
// live items that the ways of the boundaries behind allow.
//
// A boundary that cannot be crossed fails by the sections from its reach on, which bisection finds.
// At first a failure is repaired: the one earlier choice is changed that then leads farthest. If no
// change helps, the window is searched from its begin, depth first over ways: a failure goes back
// to the last choice within its reach, and the reaches of the refuted ways of a choice are joined.
// If the search ends without a way left out, the sections from the reach on are refuted.
Verdict Tiling::run(const Strategy& /*strategy*/, std::int64_t node_budget, Stopper* stopper,
                    const std::atomic<bool>* cancel) {
  const std::int64_t limit = nodes_ + std::min(node_budget, std::int64_t{1} << 60);
  stopper_ = stopper;
  cancel_ = cancel;
  while (!exhausted_ && nodes_ < limit && !must_stop()) {
    MEMPLAN_ASSERT(check_invariants());
    const Verdict verdict = at_ == windows_[window_].last ? finish_window() : step();
    if (verdict != Verdict::kBudget) return verdict;
  }
  return Verdict::kBudget;
}

bool Tiling::check_invariants() const {
  if (!kAssertions) return true;
  if (exhausted_) return true;  // the tree is of no more use
  const Window& window = windows_[window_];
  MEMPLAN_ASSERT(window.first <= at_ && at_ <= window.last);
  MEMPLAN_ASSERT(tree_.check_invariants());
  std::vector<int> ordered = tree_.order();
  std::sort(ordered.begin(), ordered.end());
  MEMPLAN_ASSERT(ordered == live_in(at_));
  Bytes load = 0;
  for (const int id : ordered) load += task_.items[id].size;
  MEMPLAN_ASSERT(load == task_.ceiling);
  MEMPLAN_ASSERT(std::count(marked_.begin(), marked_.end(), 0) ==
                 static_cast<std::ptrdiff_t>(marked_.size()));
  std::size_t steps = 0;
  for (int j = window.first; j < at_; ++j) {
    const Boundary& boundary = boundaries_[j];
    MEMPLAN_ASSERT(boundary.way < static_cast<int>(boundary.ways.size()));
    MEMPLAN_ASSERT(boundary.steps_before == steps && boundary.reach <= j);
    steps += boundary.ways[boundary.way].size();
  }
  MEMPLAN_ASSERT(steps == steps_.size());
  return true;
}
bool Tiling::must_stop() {
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return true;
  return stopper_ != nullptr && stopper_->expired();
}

// A window that can be crossed proves nothing, unless it is the whole task: then it is a plan.
Verdict Tiling::finish_window() {
  const Window& window = windows_[window_];
  if (window.first == 0 && window.last == task_.sections - 1) {
    place();
    exhausted_ = true;
    return Verdict::kSat;
  }
  if (++window_ == windows_.size()) {
    exhausted_ = true;
    return Verdict::kBudget;
  }
  at_ = windows_[window_].first;
  complete_ = true;
  repairing_ = true;
  repairs_ = 0;
  highest_ = 0;
  steps_.clear();
  tree_ = PqTree(live_in(at_));
  return Verdict::kBudget;
}

// Crosses the boundary at_ by its current way, or changes an earlier choice.
Verdict Tiling::step() {
  Boundary& boundary = boundaries_[at_];
  if (boundary.ways.empty()) list_ways(boundary);
  if (repairing_ || boundary.way == 0) {
    boundary.reach = at_;
    boundary.steps_before = steps_.size();
    if (boundary.ways.size() > 1) boundary.before = tree_;
  }
  if (cross(tree_, at_, &steps_)) {
    ++at_;
    return Verdict::kBudget;
  }
  MEMPLAN_ASSERT(!boundary.ways.empty());
  const int reach = find_reach(at_);
  MEMPLAN_ASSERT(windows_[window_].first <= reach && reach <= at_);
  if (exhausted_) return Verdict::kBudget;
  if (repairing_) return repair(reach);
  highest_ = std::max(highest_, at_);
  boundary.reach = std::min(boundary.reach, reach);
  return go_back();
}

// When the boundary at_ cannot be crossed, this changes the one earlier choice that then leads
// farthest. It is not systematic: it often succeeds at once, and where it fails the systematic
// search begins.
Verdict Tiling::repair(int reach) {
  const int failed = at_;
  int best = failed, choice = -1, best_way = 0;
  int choices = 0;
  for (int c = failed; c >= reach && choices < kRepairChoices; --c) {
    const int ways = std::min(kRepairWays, static_cast<int>(boundaries_[c].ways.size()));
    choices += ways > 1 ? 1 : 0;
    const int used = boundaries_[c].way;
    for (int way = 0; way < ways; ++way) {
      if (way == used) continue;
      boundaries_[c].way = way;
      const int far = leads_to(c, failed + kRepairAhead);
      if (far > best) {
        best = far;
        choice = c;
        best_way = way;
      }
    }
    boundaries_[c].way = used;
  }
  if (exhausted_) return Verdict::kBudget;
  if (choice < 0 || ++repairs_ > kMaxRepairs) {
    repairing_ = false;
    for (Boundary& boundary : boundaries_) boundary.way = 0;
    at_ = windows_[window_].first;
    tree_ = PqTree(live_in(at_));
    steps_.clear();
    return Verdict::kBudget;
  }
  Boundary& changed = boundaries_[choice];
  changed.way = best_way;
  tree_ = changed.before;
  steps_.resize(changed.steps_before);
  at_ = choice;
  return Verdict::kBudget;
}

// The first boundary from `from` on that cannot be crossed, or `end`.
int Tiling::leads_to(int from, int end) {
  PqTree tree = boundaries_[from].before;
  end = std::min(end, windows_[window_].last);
  for (int j = from; j < end && !exhausted_; ++j) {
    exhausted_ = must_stop();
    if (boundaries_[j].ways.empty()) list_ways(boundaries_[j]);
    if (!cross(tree, j, nullptr)) return j;
  }
  return end;
}

// The current way of boundary `at` is refuted by the sections from its reach on. This backjumps to
// the last boundary with a part in that, and takes its next way.
Verdict Tiling::go_back() {
  while (true) {
    Boundary& failed = boundaries_[at_];
    if (++failed.way < static_cast<int>(failed.ways.size())) {
      tree_ = failed.before;
      steps_.resize(failed.steps_before);
      return Verdict::kBudget;
    }
    complete_ = complete_ && failed.all_ways;
    const int reach = failed.reach;
    failed.way = 0;
    int back = at_ - 1;
    while (back >= reach && boundaries_[back].ways.size() == 1) boundaries_[back--].way = 0;
    if (back < reach) break;
    boundaries_[back].reach = std::min(boundaries_[back].reach, reach);
    at_ = back;
  }
  exhausted_ = true;
  if (!complete_) return Verdict::kBudget;
  const int reach = boundaries_[at_].reach;
  for (const Item<Bytes>& item : task_.items) {
    conflict_[item.id] = item.last >= reach && item.first <= highest_ + 1;
  }
  return Verdict::kUnsat;
}

bool Tiling::cross(PqTree& tree, int at, std::vector<PqTree::Exchange>* steps) {
  const Boundary& boundary = boundaries_[at];
  for (PqTree::Exchange exchange : boundary.ways[boundary.way]) {
    ++nodes_;
    for (const int id : exchange.out) marked_[id] = 1;
    const std::vector<int> leaving = exchange.out;
    const bool done = tree.apply(exchange, marked_);
    for (const int id : leaving) marked_[id] = 0;
    if (!done) return false;
    if (steps != nullptr) steps->push_back(std::move(exchange));
  }
  return true;
}

bool Tiling::fails_from(int first, int at) {
  PqTree tree(live_in(first));
  for (int j = first; j <= at && !exhausted_; ++j) {
    if (!cross(tree, j, nullptr)) return true;
    exhausted_ = must_stop();  // a check that was cut short proves nothing
  }
  return false;
}

// Returns the last section such that the sections from it on suffice to refute the current way of
// boundary `at`.
int Tiling::find_reach(int at) {
  int fails = windows_[window_].first, holds = at;
  for (int step = 1; at - step > fails; step *= 2) {
    if (fails_from(at - step, at)) {
      fails = at - step;
      break;
    }
    holds = at - step;
  }
  while (holds - fails > 1) {
    const int middle = fails + (holds - fails) / 2;
    (fails_from(middle, at) ? fails : holds) = middle;
  }
  return fails;
}

// At a boundary without free space, the items that begin take the place of those that end. A way
// splits both into matches of equal sums, each of which is exchanged in one piece. All ways are
// listed if they are few; a sweep that fails with some of them only is no refutation (`all_ways`).
void Tiling::list_ways(Boundary& boundary) const {
  std::vector<Bytes> ending, beginning;
  for (const int id : boundary.ending) ending.push_back(task_.items[id].size);
  for (const int id : boundary.beginning) beginning.push_back(task_.items[id].size);
  if (std::max(ending.size(), beginning.size()) > 63) {
    boundary.ways.push_back({{boundary.ending, boundary.beginning, -1, false}});
    boundary.all_ways = ending.size() == 1 || beginning.size() == 1;
    return;
  }
  MEMPLAN_ASSERT(std::accumulate(ending.begin(), ending.end(), Bytes{0}) ==
                 std::accumulate(beginning.begin(), beginning.end(), Bytes{0}));
  const Matchings found = matchings(ending, beginning);
  boundary.all_ways = found.all;
  const auto pick = [](const std::vector<int>& ids, std::uint64_t subset) {
    std::vector<int> picked;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if ((subset >> i & 1) != 0) picked.push_back(ids[i]);
    }
    return picked;
  };
  for (const std::vector<Match>& matches : found.ways) {
    Way way;
    for (const Match& match : matches) {
      way.push_back({pick(boundary.ending, match.ending), pick(boundary.beginning, match.beginning),
                     -1, false});
    }
    boundary.ways.push_back(std::move(way));
  }
}

std::vector<int> Tiling::live_in(int section) const {
  std::vector<int> live;
  for (const Item<Bytes>& item : task_.items) {
    if (item.first <= section && section <= item.last) live.push_back(item.id);
  }
  return live;
}

// Takes any order that is left for the last section and goes backwards: each exchange is undone in
// the place where it happened.
void Tiling::place() {
  std::vector<int> order = tree_.order();
  const auto stack = [&] {
    Bytes at = 0;
    for (const int id : order) {
      offsets_[id] = at;
      at += task_.items[id].size;
    }
    MEMPLAN_ASSERT(at == task_.ceiling);
  };
  stack();
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    for (const int id : step->in) marked_[id] = 1;
    const auto begin =
        std::find_if(order.begin(), order.end(), [&](int id) { return marked_[id] != 0; });
    for (const int id : step->in) marked_[id] = 0;
    MEMPLAN_ASSERT(order.end() - begin >= static_cast<std::ptrdiff_t>(step->in.size()));
    if (step->witness >= 0) {
      const auto witness = std::find(order.begin(), order.end(), step->witness);
      if ((witness < begin) != step->witness_first) {
        std::reverse(step->out.begin(), step->out.end());
      }
    }
    const auto hole = order.erase(begin, begin + static_cast<std::ptrdiff_t>(step->in.size()));
    order.insert(hole, step->out.begin(), step->out.end());
    stack();
  }
}

std::unique_ptr<AnySearch> tiling_search(const Task& task) {
  if (!Tiling::applies(task)) return nullptr;
  return std::make_unique<Tiling>(task);
}

}  // namespace memplan::exact
