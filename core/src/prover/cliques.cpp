#include "prover/cliques.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "util/invariants.h"

namespace memplan::prover {

namespace {

constexpr Bytes kNone = std::numeric_limits<Bytes>::min() / 2;

// Each start costs two scans of the clique, and a rise touches many starts: this is quadratic, and
// too slow for larger cliques.
constexpr int kMaxEdgeFinding = 512;

}  // namespace

Cliques::Cliques(const Model& model, const ProverOptions& options, Trail& trail)
    : model_(model),
      options_(options),
      trail_(trail),
      order_{model.cliques.values, model.cliques.values},
      touched_(2 * static_cast<std::size_t>(model.items), 0),
      set_touched_(touched_.size(), 0),
      settled_(touched_.size(), 0),
      set_since_(touched_.size(), 0),
      sum_(model.cliques.count(), 0),
      tasks_(2 * static_cast<std::size_t>(model.cliques.count())) {
  for (auto& order : all_) {
    order.resize(model.items);
    std::iota(order.begin(), order.end(), 0);
  }
  std::size_t most = 0;
  for (int c = 0; c < model.cliques.count(); ++c) {
    most = std::max(most, static_cast<std::size_t>(model.cliques.size(c)));
  }
  item_.resize(most);
  for (auto* column : {&start_, &end_, &size_}) column->resize(most);
}

void Cliques::forget() {
  for (const Half h : risen_) touched_[h] = false;
  for (const Half h : sets_) set_touched_[h] = false;
  for (const std::int32_t t : queue_) tasks_[t].queued = false;
  risen_.clear();
  sets_.clear();
  queue_.clear();
}

bool Cliques::check_invariants() const {
  if (!kAssertions) return true;
  const auto marked = [](const std::vector<char>& marks) {
    return marks.size() - static_cast<std::size_t>(std::count(marks.begin(), marks.end(), 0));
  };
  MEMPLAN_ASSERT(marked(touched_) == risen_.size() && marked(set_touched_) == sets_.size());
  for (const Half h : risen_) MEMPLAN_ASSERT(touched_[h] && settled_[h] < trail_.bound(h));
  for (const Half h : sets_) MEMPLAN_ASSERT(set_touched_[h]);
  std::size_t queued = 0;
  for (const Task& task : tasks_) queued += task.queued ? 1 : 0;
  MEMPLAN_ASSERT(queued == queue_.size());
  for (const int direction : {0, 1}) {
    std::vector<std::int32_t> all = all_[direction];
    std::sort(all.begin(), all.end());
    for (int i = 0; i < model_.items; ++i) MEMPLAN_ASSERT(all[i] == i);
    for (int c = 0; c < model_.cliques.count(); ++c) {
      const auto begin = order_[direction].begin() + model_.cliques.begin[c];
      MEMPLAN_ASSERT(
          std::is_permutation(begin, begin + model_.cliques.size(c), model_.cliques.first(c)));
    }
  }
  return true;
}
// Bounds move little between two sorts, so that insertion sort is fast.
void Cliques::sort(std::int32_t* order, int count, int direction) {
  const Bytes* const bound = trail_.bounds() + direction;
  for (int k = 1; k < count; ++k) {
    const std::int32_t item = order[k];
    const Bytes key = bound[2 * item];
    int at = k;
    for (; at > 0 && bound[2 * order[at - 1]] > key; --at) order[at] = order[at - 1];
    order[at] = item;
    steps_ += k - at;
  }
  steps_ += count / 2;
}

// The members by ascending bound.
std::int32_t* Cliques::sorted(int clique, int direction) {
  std::int32_t* const order = order_[direction].data() + model_.cliques.begin[clique];
  sort(order, model_.cliques.size(clique), direction);
  return order;
}

// ---- an item lies after the sum of what is decided to lie before it

// Empties the queue of items with new orders or bounds. It stops at the first consequence: the
// earlier stages of propagate() cost less, and may decide what is still in the queue.
bool Cliques::propagate_sets(Conflict* conflict) {
  bool sorted[2] = {false, false};
  while (!sets_.empty()) {
    const Half h = sets_.back();
    if (!sorted[h & 1]) {
      sort(all_[h & 1].data(), model_.items, h & 1);
      sorted[h & 1] = true;
    }
    sets_.pop_back();
    set_touched_[h] = false;
    const std::int32_t before = trail_.size();
    if (!propagate_set(h, conflict)) return false;
    if (trail_.size() > before) return true;
  }
  return true;
}

bool Cliques::propagate_set(Half h, Conflict* conflict) {
  const int direction = h & 1;
  std::int32_t clique = -1;
  const Bytes best = pile(h >> 1, direction, set_since_[h], trail_.bound(h), &clique);
  if (clique < 0) return true;
  if (trail_.raise(h, best, {Rule::kSet, static_cast<std::uint8_t>(direction), clique}))
    return true;
  *conflict = {Conflict::Kind::kCrossed, h};
  return false;
}

// The highest pile of items that are decided to lie before one, if it is above `best`. A pile
// begins where the lowest of its items may at the earliest, and all of them are in one clique. From
// the latest beginning on, every item adds to the piles of the cliques that it shares. Piles that
// begin at or below `since` have been looked at before.
Bytes Cliques::pile(int item, int direction, Bytes since, Bytes best, std::int32_t* clique) {
  const std::int8_t* const relation = trail_.relations(item);
  const std::int8_t after = direction == 0 ? Trail::kAbove : Trail::kBelow;
  const std::int32_t* const mine = model_.cliques_of.first(item);
  const int count = model_.cliques_of.size(item);
  const bool whole = model_.is_whole(item);
  Bytes* const sum = sum_.data();
  std::fill(sum, sum + count, 0);
  const Bytes* const bound = trail_.bounds() + direction;
  const std::int32_t* const order = all_[direction].data();
  int k = model_.items - 1;
  for (; k >= 0; --k) {
    const std::int32_t before = order[k];
    if (relation[before] != after) continue;
    const Bytes start = bound[2 * before], size = model_.size[before];
    if (start <= since) break;
    Bytes highest = 0;
    int first = 0, last = count;
    if (whole && model_.is_whole(before)) {
      std::tie(first, last) = model_.shared(item, before);
      for (int c = first; c < last; ++c) highest = std::max(highest, sum[c] += size);
    } else {
      for (int c = 0; c < count; ++c) {
        if (model_.in_clique(before, mine[c])) highest = std::max(highest, sum[c] += size);
      }
    }
    steps_ += 1 + (last - first) / 2;
    if (start + highest <= best) continue;
    best = start + highest;
    MEMPLAN_ASSERT(std::find(sum + first, sum + last, highest) != sum + last ||
                   !(whole && model_.is_whole(before)));
    *clique = mine[std::find(sum + first, sum + last, highest) - sum];
  }
  steps_ += (model_.items - k) / 4;
  return best;
}

// ---- windows: overload and edge finding

// Turns the rises noted since the last call into tasks for the cliques of their items. A window
// gains an item only when it begins within the rise of one, in this direction or in the mirrored
// one.
void Cliques::schedule() {
  for (const Half h : risen_) {
    touched_[h] = false;
    const Bytes now = trail_.bound(h);
    for (const auto* c = model_.cliques_of.first(h >> 1); c != model_.cliques_of.last(h >> 1);
         ++c) {
      const std::int32_t t = 2 * *c + (h & 1);
      Task& task = tasks_[t];
      if (!task.queued) {
        task = {settled_[h], now, true};
        queue_.push_back(t);
      } else {
        task.lo = std::min(task.lo, settled_[h]);
        task.hi = std::max(task.hi, now);
      }
    }
  }
  risen_.clear();
}

bool Cliques::propagate_windows(Conflict* conflict) {
  schedule();
  while (!queue_.empty()) {
    const std::int32_t t = queue_.back();
    const Task task = tasks_[t];
    queue_.pop_back();
    tasks_[t].queued = false;
    const std::int32_t before = trail_.size();
    if (!scan(t >> 1, t & 1, task.lo, task.hi, conflict)) return false;
    if (trail_.size() > before) return true;
  }
  return true;
}

// Items of a clique are jobs on one machine (Carlier and Pinson 1989). A window has the items that
// must lie in [start, end): they need the sum of their sizes there. If that is too much, there is
// no plan (overload). If it is too much with one more item, which starts no earlier, this item lies
// after all of them (edge finding): before any of them, it would end in the window too.
//
// Every start of an item with every end would be n^2 windows, each with n items. Instead, one scan
// by ascending end has all windows of one start, and the tightest of them so far is enough: an item
// that does not fit in there fits in no other. Starts outside of (lo, hi] have not gained items.
bool Cliques::scan(int clique, int direction, Bytes lo, Bytes hi, Conflict* conflict) {
  const std::int32_t* const by_start = sorted(clique, direction);
  const std::int32_t* const by_end = sorted(clique, direction ^ 1);  // descending
  count_ = model_.cliques.size(clique);
  steps_ += count_;
  for (int k = 0; k < count_; ++k) {
    const std::int32_t item = by_end[count_ - 1 - k];
    item_[k] = item;
    MEMPLAN_ASSERT(k == 0 || end_[k - 1] <= -trail_.bound(2 * item + (direction ^ 1)));
    start_[k] = trail_.bound(2 * item + direction);
    end_[k] = -trail_.bound(2 * item + (direction ^ 1));
    size_[k] = model_.size[item];
  }
  Window from{clique, direction, 0, 0};
  bool first = true;
  for (int k = count_ - 1; k >= 0; --k) {
    const Bytes start = trail_.bound(2 * by_start[k] + direction);
    if (start <= lo) break;
    if (start > hi || (!first && start == from.start)) continue;
    first = false;
    from.start = start;
    Bytes load = 0;
    steps_ += 2 * count_;
    if (!scan_forth(from, &load, conflict)) return false;
    if (!options_.edge_finding || count_ > kMaxEdgeFinding) continue;
    if (!scan_back(from, load, conflict)) return false;
  }
  return true;
}

// All windows that begin at `from.start`, by ascending end. The window with the least room so far
// decides for the items that end later whether they fit in as well.
bool Cliques::scan_forth(const Window& from, Bytes* load, Conflict* conflict) {
  const bool edges = options_.edge_finding && count_ <= kMaxEdgeFinding;
  Bytes sum = 0, excess = kNone;  // of the tightest window: its load less its room
  int tightest = -1;
  for (int k = 0; k < count_; ++k) {
    if (start_[k] < from.start) continue;
    sum += size_[k];
    const Bytes over = from.start + sum - end_[k];
    if (over > 0 && options_.overload) {
      *conflict = {Conflict::Kind::kOverload,
                   trail_.add_window({from.clique, from.direction, from.start, end_[k]})};
      return false;
    }
    MEMPLAN_ASSERT(tightest >= 0 || excess + size_[k] <= 0);
    if (edges && excess + size_[k] > 0 && end_[k] > end_[tightest]) {
      const Window window{from.clique, from.direction, from.start, end_[tightest]};
      if (!place_after(k, window, conflict)) return false;
    }
    if (over >= excess) {
      excess = over;
      tightest = k;
    }
  }
  *load = sum;
  return true;
}

// The same windows by descending end: items that begin earlier and do not fit in lie before all
// of one. That is edge finding of the mirrored direction, for windows that this rise changed.
bool Cliques::scan_back(const Window& from, Bytes load, Conflict* conflict) {
  Bytes excess = kNone;
  int tightest = -1;
  for (int k = count_ - 1; k >= 0; --k) {
    if (start_[k] >= from.start) {
      const Bytes over = from.start + load - end_[k];
      load -= size_[k];
      if (over > excess) {
        excess = over;
        tightest = k;
      }
    } else if (excess + size_[k] > 0) {
      MEMPLAN_ASSERT(tightest >= 0);
      const Window window{from.clique, from.direction, from.start, end_[tightest]};
      if (!place_before(k, window, conflict)) return false;
    }
  }
  return true;
}

bool Cliques::place_after(int slot, const Window& window, Conflict* conflict) {
  std::int32_t index = -1;
  for (int k = 0; k < count_ && end_[k] <= window.end; ++k) {
    if (start_[k] < window.start) continue;
    const Half a = model_.arc_of(item_[k], item_[slot]) ^ window.direction;
    if (trail_.bound(a) > 0) continue;
    if (index < 0) index = trail_.add_window(window);
    if (!decide(a, index, window.direction, conflict)) return false;
  }
  return true;
}

// In the mirrored direction the item lies after the mirrored window.
bool Cliques::place_before(int slot, const Window& window, Conflict* conflict) {
  const Window mirrored{window.clique, window.direction ^ 1, -window.end, -window.start};
  std::int32_t index = -1;
  for (int k = 0; k < count_ && end_[k] <= window.end; ++k) {
    if (start_[k] < window.start) continue;
    const Half a = model_.arc_of(item_[slot], item_[k]) ^ window.direction;
    if (trail_.bound(a) > 0) continue;
    if (index < 0) index = trail_.add_window(mirrored);
    if (!decide(a, index, mirrored.direction, conflict)) return false;
  }
  return true;
}

bool Cliques::decide(Half a, std::int32_t window, int direction, Conflict* conflict) {
  if (trail_.raise(a, 1, {Rule::kEdge, static_cast<std::uint8_t>(direction), window})) return true;
  *conflict = {Conflict::Kind::kCrossed, a};
  return false;
}

}  // namespace memplan::prover
