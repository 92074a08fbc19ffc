#include "exact/search.h"

#include <algorithm>
#include <limits>

namespace memplan::exact {

namespace {

// SplitMix64: a fixed, portable source of keys and noise.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

double unit_interval(std::uint64_t x) { return static_cast<double>(mix(x) >> 11) * 0x1p-53; }

}  // namespace

template <typename V, bool kRestricted>
Search<V, kRestricted>::Search(const Task& task, const ExactOptions& options)
    : options_(options),
      words_(static_cast<int>((task.items.size() + 63) / 64)),
      root_sections_(task.sections),
      root_ceiling_(static_cast<V>(task.ceiling)),
      world_(task.world),
      source_(task.source),
      conflict_bits_(words_, 0),
      conflict_(conflict_bits_.data(), words_),
      nogoods_(static_cast<int>(task.items.size())),
      offsets_(task.items.size(), kNoOffset) {
  const std::size_t n = task.items.size();
  for (const Item<Bytes>& item : task.items) {
    root_.push_back(
        {static_cast<V>(item.floor), static_cast<V>(item.size), item.first, item.last, item.id});
  }
  std::stable_sort(root_.begin(), root_.end(),
                   [](const Node& a, const Node& b) { return a.floor > b.floor; });
  for (std::size_t i = 0; i < n; ++i) zobrist_.push_back(mix(i + 1));
  const std::size_t s = static_cast<std::size_t>(task.sections) + 1;
  for (auto* column : {&load_, &floor_, &top_}) column->resize(s);
  for (auto* column : {&begins_, &ends_, &map_, &choices_, &weight_}) column->resize(s);
  noise_.resize(n);
  held_.resize(n);
}

template <typename V, bool kRestricted>
Verdict Search<V, kRestricted>::run(const Strategy& strategy, std::int64_t node_budget,
                                    Stopper* stopper, const std::atomic<bool>* cancel) {
  strategy_ = strategy;
  node_limit_ = node_budget > std::numeric_limits<std::int64_t>::max() - nodes_
                    ? std::numeric_limits<std::int64_t>::max()
                    : nodes_ + node_budget;
  stopper_ = stopper;
  cancel_ = cancel;
  std::fill(weight_.begin(), weight_.end(), 1);
  for (std::size_t i = 0; i < noise_.size(); ++i) {
    noise_[i] = 1 + strategy.noise * (2 * unit_interval(mix(strategy.seed) + i) - 1);
  }
  frames_.clear();
  arena_.release({});

  Child root;
  root.mark = arena_.mark();
  root.count = static_cast<int>(root_.size());
  root.sections = root_sections_;
  root.ceiling = root_ceiling_;
  root.items = arena_.take<Node>(root_.size());
  std::copy(root_.begin(), root_.end(), root.items);
  root.section = arena_.take<std::int32_t>(root_sections_);
  for (int j = 0; j < root_sections_; ++j) root.section[j] = j;

  // The stack is our own: its depth grows with the number of items, the thread's must not.
  Step step = open(root);
  while (true) {
    switch (step) {
      case Step::kAdvance:
        step = advance();
        break;
      case Step::kChild:
        step = open(child_);
        break;
      case Step::kBudget:
        return Verdict::kBudget;
      case Step::kSat:
      case Step::kUnsat:
        if (frames_.empty()) return step == Step::kSat ? Verdict::kSat : Verdict::kUnsat;
        step = absorb(step);
        break;
    }
  }
}

template <typename V, bool kRestricted>
bool Search<V, kRestricted>::out_of_budget() {
  if (nodes_ >= node_limit_ || arena_.reserved_bytes() > kMaxArena) return true;
  if (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) return true;
  return stopper_ != nullptr && (nodes_ % 16 == 0 ? stopper_->look() : stopper_->stopped());
}

// ---- the machine: open a problem, advance a frame, absorb a verdict

// Takes in a new problem: decides it at once, or leaves a frame that advance() continues.
template <typename V, bool kRestricted>
typename Search<V, kRestricted>::Step Search<V, kRestricted>::open(Child child) {
  if (out_of_budget()) return Step::kBudget;
  ++nodes_;
  IdSet resolved(arena_, words_);
  const auto decided = [&](Step verdict) {
    if (verdict == Step::kUnsat) conflict_.add(resolved);
    arena_.release(child.mark);
    return verdict;
  };
  switch (reduce(child, resolved)) {
    case Reduction::kUnsat:
      return decided(Step::kUnsat);
    case Reduction::kEmpty:
      return decided(Step::kSat);
    case Reduction::kSplit:
      return open_split(child, resolved);
    case Reduction::kDone:
      break;
  }
  if (!bound_holds(child)) return decided(Step::kUnsat);
  if (!kRestricted && options_.release_dates && child.sections == 1) {
    place_stack(child);
    return decided(Step::kSat);
  }
  Frame frame;
  frame.problem = child;
  frame.resolved = resolved;
  if (options_.nogoods) {
    frame.key = key_of(child);
    if (nogoods_.refutes(frame.key, child.items, child.count, child.ceiling, conflict_)) {
      return decided(Step::kUnsat);
    }
  }
  choose_section(frame);
  order_options(frame);
  find_jump(frame);
  frame.learned = IdSet(arena_, words_);
  frame.raised = IdSet(arena_, words_);
  frames_.push_back(frame);
  return Step::kAdvance;
}

// Brings forth the next child of the top frame, or its verdict when there is none left.
template <typename V, bool kRestricted>
typename Search<V, kRestricted>::Step Search<V, kRestricted>::advance() {
  Frame& frame = frames_.back();
  if (frame.split) {
    if (frame.next == frame.part_count) return close(Step::kSat);
    child_ = frame.parts[frame.next++];
    child_.mark = arena_.mark();
    return Step::kChild;
  }
  while (frame.next < frame.option_count) {
    const Node placed = frame.problem.items[frame.options[frame.next++]];
    if (place_child(frame, placed)) return Step::kChild;
    if (absorb(Step::kUnsat) == Step::kUnsat) return Step::kUnsat;
  }
  if (frame.next == frame.option_count) {
    ++frame.next;
    if (frame.jump != kNoJump) {
      if (raise_section(frame)) return Step::kChild;
      if (absorb(Step::kUnsat) == Step::kUnsat) return Step::kUnsat;
    } else if (frame.explain_gap) {
      const Child& p = frame.problem;
      for (int i = 0; i < p.count; ++i) {
        const Node& item = p.items[i];
        if (item.first <= frame.section && frame.section <= item.last) frame.learned.add(item.id);
      }
    }
  }
  if (options_.nogoods) {
    const Child& p = frame.problem;
    nogoods_.learn(frame.key, p.items, p.count, p.ceiling, frame.learned);
  }
  conflict_.clear();
  conflict_.add(frame.learned);
  return close(Step::kUnsat);
}

// What the verdict on a child means for the frame that asked.
template <typename V, bool kRestricted>
typename Search<V, kRestricted>::Step Search<V, kRestricted>::absorb(Step verdict) {
  Frame& frame = frames_.back();
  if (frame.split) return verdict == Step::kUnsat ? close(verdict) : Step::kAdvance;
  if (verdict == Step::kSat) return close(verdict);
  // Backjump: the child raised nobody that its conflict speaks of, so the same items are in
  // conflict here, whatever is decided here.
  if (options_.backjumping && !conflict_.meets(frame.raised)) return close(verdict);
  frame.learned.add(conflict_);
  if (frame.next <= frame.option_count) {
    frame.learned.add(frame.problem.items[frame.options[frame.next - 1]].id);
  }
  return Step::kAdvance;
}

template <typename V, bool kRestricted>
typename Search<V, kRestricted>::Step Search<V, kRestricted>::close(Step verdict) {
  const Frame& frame = frames_.back();
  if (verdict == Step::kUnsat) conflict_.add(frame.resolved);
  arena_.release(frame.problem.mark);
  frames_.pop_back();
  return verdict;
}

// ---- reductions: what can be decided without a choice

template <typename V, bool kRestricted>
typename Search<V, kRestricted>::Reduction Search<V, kRestricted>::reduce(Child& problem,
                                                                          IdSet& resolved) {
  while (true) {
    if (problem.count == 0) return Reduction::kEmpty;
    if (contract(problem) > 1 && options_.decomposition) return Reduction::kSplit;
    // Swapping a full-span item with its neighbours moves them by its size: not allowed where
    // one of them is pinned, or aligned to something else.
    if (kRestricted || !options_.full_span) return Reduction::kDone;
    bool changed = false;
    if (!place_full_span(problem, resolved, changed)) return Reduction::kUnsat;
    if (!changed) return Reduction::kDone;
  }
}

// Drops every section whose items are all in a kept neighbour: it implies nothing that the
// neighbour does not. A section is kept if an item began since the last kept one and one ends in
// it. Returns the number of parts between times that no item crosses.
template <typename V, bool kRestricted>
int Search<V, kRestricted>::contract(Child& problem) {
  const int sections = problem.sections;
  std::fill(begins_.begin(), begins_.begin() + sections, 0);
  std::fill(ends_.begin(), ends_.begin() + sections, 0);
  for (int i = 0; i < problem.count; ++i) {
    ++begins_[problem.items[i].first];
    ++ends_[problem.items[i].last];
  }
  int kept = 0, parts = 0, alive = 0;
  bool begun = false;
  for (int j = 0; j < sections; ++j) {
    alive += begins_[j];
    begun = begun || begins_[j] > 0;
    map_[j] = kept;
    if (options_.contraction ? (begun && ends_[j] > 0) : alive > 0) {
      choices_[kept++] = j;
      begun = false;
    }
    alive -= ends_[j];
    if (ends_[j] > 0 && alive == 0) ++parts;
  }
  if (kept == sections) return parts;
  std::int32_t* names = arena_.take<std::int32_t>(kept);
  for (int j = 0; j < kept; ++j) names[j] = problem.section[choices_[j]];
  problem.section = names;
  problem.sections = kept;
  // first -> the first kept section at or after it; last -> the last kept one at or before it.
  map_[sections] = kept;
  for (int i = 0; i < problem.count; ++i) {
    Node& item = problem.items[i];
    item.first = map_[item.first];
    item.last = map_[item.last + 1] - 1;
  }
  return parts;
}

// An item over all sections overlaps every other, so it can be moved past its neighbours if they
// give way by its size: to the ceiling if no floor is above its own (those that come down by its
// size still lie above its old place), to its floor if no floor is below its own (those that go
// up only rise). Returns false if its place is above what the ceiling allows.
template <typename V, bool kRestricted>
bool Search<V, kRestricted>::place_full_span(Child& problem, IdSet& resolved, bool& changed) {
  const auto full = [&](const Node& item) {
    return item.first == 0 && item.last == problem.sections - 1;
  };
  const auto take = [&](int i) {
    const Node item = problem.items[i];
    resolved.add(item.id);
    std::copy(problem.items + i + 1, problem.items + problem.count, problem.items + i);
    --problem.count;
    changed = true;
    return item;
  };
  bool again = true;
  while (again && problem.count > 0) {
    again = false;
    Node* items = problem.items;
    for (int i = 0; i < problem.count && items[i].floor == items[0].floor; ++i) {
      if (!full(items[i])) continue;
      const Node item = take(i);
      problem.ceiling = static_cast<V>(problem.ceiling - item.size);
      offsets_[item.id] = problem.ceiling;
      if (item.floor > problem.ceiling) {
        conflict_.clear();
        return false;
      }
      again = true;
      break;
    }
    if (again) continue;
    for (int i = problem.count - 1; i >= 0 && items[i].floor == items[problem.count - 1].floor;
         --i) {
      if (!full(items[i])) continue;
      const Node item = take(i);
      const V top = static_cast<V>(item.floor + item.size);
      offsets_[item.id] = item.floor;
      if (top > problem.ceiling) {
        conflict_.clear();
        return false;
      }
      for (int k = problem.count - 1; k >= 0 && items[k].floor < top; --k) items[k].floor = top;
      again = true;
      break;
    }
  }
  return true;
}

// Cuts a contracted problem at the times that no item crosses; the tightest part is solved first,
// because it is the most likely to fail.
template <typename V, bool kRestricted>
typename Search<V, kRestricted>::Step Search<V, kRestricted>::open_split(const Child& problem,
                                                                         const IdSet& resolved) {
  // After contraction: where each part begins, and the load of each section.
  const int sections = problem.sections;
  std::fill(load_.begin(), load_.begin() + sections, V{0});
  std::fill(begins_.begin(), begins_.begin() + sections + 1, 0);
  for (int i = 0; i < problem.count; ++i) {
    const Node& item = problem.items[i];
    for (int j = item.first; j <= item.last; ++j) {
      load_[j] = static_cast<V>(load_[j] + item.size);
      floor_[j] = item.floor;  // items come by descending floor: the last one is the least
    }
    ++begins_[item.first + 1];  // crossings of the boundary before a section
    --begins_[item.last + 1];
  }
  int parts = 0;
  for (int j = 0, crossing = 0; j < sections; ++j) {
    crossing += begins_[j];
    if (crossing == 0) choices_[parts++] = j;
    map_[j] = parts - 1;
  }
  choices_[parts] = sections;

  Frame frame;
  frame.problem = problem;
  frame.resolved = resolved;
  frame.split = true;
  frame.part_count = parts;
  frame.parts = arena_.take<Child>(parts);
  V* slack = arena_.take<V>(parts);
  int* order = arena_.take<int>(parts);
  for (int p = 0; p < parts; ++p) {
    Child part;
    part.sections = choices_[p + 1] - choices_[p];
    part.section = problem.section + choices_[p];
    part.ceiling = problem.ceiling;
    slack[p] = std::numeric_limits<V>::max();
    for (int j = choices_[p]; j < choices_[p + 1]; ++j) {
      slack[p] = std::min<V>(slack[p], static_cast<V>(problem.ceiling - floor_[j] - load_[j]));
    }
    order[p] = p;
    frame.parts[p] = part;
  }
  for (int i = 0; i < problem.count; ++i) ++frame.parts[map_[problem.items[i].first]].count;
  for (int p = 0; p < parts; ++p) {
    frame.parts[p].items = arena_.take<Node>(frame.parts[p].count);
    frame.parts[p].count = 0;
  }
  for (int i = 0; i < problem.count; ++i) {
    Node item = problem.items[i];
    const int p = map_[item.first];
    item.first -= choices_[p];
    item.last -= choices_[p];
    frame.parts[p].items[frame.parts[p].count++] = item;
  }
  std::sort(order, order + parts,
            [&](int a, int b) { return slack[a] != slack[b] ? slack[a] < slack[b] : a < b; });
  Child* sorted = arena_.take<Child>(parts);
  for (int p = 0; p < parts; ++p) sorted[p] = frame.parts[order[p]];
  frame.parts = sorted;
  frames_.push_back(frame);
  return Step::kAdvance;
}

// One section, no restriction: stack by ascending floor. bound_holds() has shown that it fits.
template <typename V, bool kRestricted>
void Search<V, kRestricted>::place_stack(const Child& problem) {
  V at = 0;
  for (int i = problem.count - 1; i >= 0; --i) {
    at = std::max(at, problem.items[i].floor);
    offsets_[problem.items[i].id] = at;
    at = static_cast<V>(at + problem.items[i].size);
  }
}

// ---- the bound

// In every section, items with floor >= f need their sizes above f: for a single section this is
// exact (one machine with release dates). Leaves load_, floor_ and top_ (the least top that an
// item of the section could have) for the choice of a branch. On failure the conflict is the
// items seen so far in the section that overflows.
template <typename V, bool kRestricted>
bool Search<V, kRestricted>::bound_holds(const Child& problem) {
  if (kRestricted && !floors_hold(problem)) return false;
  const int sections = problem.sections;
  V* const load = load_.data();
  V* const floor = floor_.data();
  V* const top = top_.data();
  std::fill(load, load + sections, V{0});
  std::fill(top, top + sections, std::numeric_limits<V>::max());
  for (int i = 0; i < problem.count; ++i) {
    const Node& item = problem.items[i];
    const V item_top = static_cast<V>(item.floor + item.size);
    V highest = 0;
    for (int j = item.first; j <= item.last; ++j) {
      load[j] = static_cast<V>(load[j] + item.size);
      floor[j] = item.floor;
      top[j] = top[j] < item_top ? top[j] : item_top;
      highest = highest > load[j] ? highest : load[j];
    }
    // Without release dates the floor of the section counts once all its items are in.
    const V base = options_.release_dates || i + 1 == problem.count ? item.floor : V{0};
    if (highest <= problem.ceiling - base) continue;
    int worst = item.first;
    for (int j = item.first; j <= item.last; ++j) {
      if (load[j] > load[worst]) worst = j;
    }
    conflict_.clear();
    for (int k = 0; k <= i; ++k) {
      const Node& other = problem.items[k];
      if (other.first <= worst && worst <= other.last) conflict_.add(other.id);
    }
    ++weight_[problem.section[worst]];
    return false;
  }
  return true;
}

// Restricted problems only: an item whose floor has passed its latest offset is a conflict.
template <typename V, bool kRestricted>
bool Search<V, kRestricted>::floors_hold(const Child& problem) {
  if constexpr (kRestricted) {
    for (int i = 0; i < problem.count; ++i) {
      const Node& item = problem.items[i];
      if (item.floor <= world_->latest[source_[item.id]]) continue;
      conflict_.clear();
      conflict_.add(item.id);
      return false;
    }
  }
  return true;
}

template <typename V, bool kRestricted>
std::uint64_t Search<V, kRestricted>::key_of(const Child& problem) const {
  std::uint64_t key = 0;
  for (int i = 0; i < problem.count; ++i) key ^= zobrist_[problem.items[i].id];
  return key;
}

// ---- the branch

// A feasible problem has a plan in which every item lies at its floor or rests on another. In
// section j with least floor f, one of the items with that floor starts at f, or the lowest item
// of j lies higher. An item at its floor has all that overlap it above, if nothing fits below it
// ("placeable": no overlapping item could have its top at or below that floor). A section is
// eligible if that holds for all its items at f; the one with the least floor of all always is.
template <typename V, bool kRestricted>
void Search<V, kRestricted>::choose_section(Frame& frame) {
  const Child& p = frame.problem;
  std::fill(choices_.begin(), choices_.begin() + p.sections, 0);
  for (int i = 0; i < p.count; ++i) {
    const Node& item = p.items[i];
    V least_top = std::numeric_limits<V>::max();
    bool lowest_somewhere = false;
    for (int j = item.first; j <= item.last; ++j) {
      least_top = least_top < top_[j] ? least_top : top_[j];
      lowest_somewhere |= floor_[j] == item.floor;
    }
    if (!lowest_somewhere) continue;
    const bool placeable = least_top > item.floor;
    for (int j = item.first; j <= item.last; ++j) {
      if (floor_[j] != item.floor) continue;
      if (!placeable) {
        choices_[j] = kNotEligible;
      } else if (choices_[j] != kNotEligible) {
        ++choices_[j];
      }
    }
  }
  double best[3] = {0, 0, 0};
  int chosen = -1;
  for (int k = 0; k < p.sections; ++k) {
    const int j = strategy_.from_right ? p.sections - 1 - k : k;
    if (choices_[j] <= 0) continue;
    const V room = static_cast<V>(p.ceiling - floor_[j] - load_[j]);
    const double slack = static_cast<double>(room);
    const double options = choices_[j] + (room > 0 ? 1 : 0);
    const double floor = static_cast<double>(floor_[j]);
    const double weighted = options / weight_[p.section[j]];
    double key[3] = {0, 0, 0};
    switch (strategy_.section) {
      case SectionRule::kOptionsSlack:
        key[0] = options, key[1] = slack;
        break;
      case SectionRule::kFloorOptionsSlack:
        key[0] = floor, key[1] = options, key[2] = slack;
        break;
      case SectionRule::kSlackOptions:
        key[0] = slack, key[1] = options;
        break;
      case SectionRule::kFloorSlackOptions:
        key[0] = floor, key[1] = slack, key[2] = options;
        break;
      case SectionRule::kOptionsFloor:
        key[0] = options, key[1] = floor;
        break;
      case SectionRule::kOptionsPerWeight:
        key[0] = weighted;
        break;
      case SectionRule::kFloorOptionsPerWeight:
        key[0] = floor, key[1] = weighted;
        break;
    }
    if (chosen >= 0 && !std::lexicographical_compare(key, key + 3, best, best + 3)) continue;
    std::copy(key, key + 3, best);
    chosen = j;
  }
  frame.section = chosen;
  frame.floor = floor_[chosen];
}

template <typename V, bool kRestricted>
double Search<V, kRestricted>::value_key(const Node& item) const {
  const double length = item.last - item.first + 1;
  const double size = static_cast<double>(item.size);
  // Two keys in one: a length is below 2^31, and a tie-break below one never outweighs it.
  const double tie = size / (size + 1) * 0.999;
  switch (strategy_.value) {
    case ValueRule::kArea:
      return size * length;
    case ValueRule::kLongest:
      return length + tie;
    case ValueRule::kLargest:
      return size;
    case ValueRule::kShortest:
      return 1 / (length + 1 - tie);
  }
  return 0;
}

// The items that may start at the floor of the section, best first, one of each kind.
template <typename V, bool kRestricted>
void Search<V, kRestricted>::order_options(Frame& frame) {
  const Child& p = frame.problem;
  struct Option {
    double key;
    int index;
  };
  Option* options = arena_.take<Option>(p.count);
  int count = 0;
  // Items come by descending floor: those at the section's floor are one run near the end.
  for (int i = p.count - 1; i >= 0; --i) {
    const Node& item = p.items[i];
    if (item.floor > frame.floor) break;
    if (item.floor < frame.floor || item.first > frame.section || item.last < frame.section) {
      continue;
    }
    const auto twin = [&](const Option& o) {
      const Node& other = p.items[o.index];
      if (kRestricted && !same_legal_offsets(other.id, item.id)) return false;
      return other.first == item.first && other.last == item.last && other.size == item.size;
    };
    if (options_.twins && std::any_of(options, options + count, twin)) continue;
    options[count++] = {value_key(item) * noise_[item.id], i};
  }
  std::sort(options, options + count, [&](const Option& a, const Option& b) {
    if (a.key != b.key) return a.key > b.key;
    return p.items[a.index].id < p.items[b.index].id;
  });
  frame.options = arena_.take<int>(count);
  frame.option_count = count;
  for (int k = 0; k < count; ++k) frame.options[k] = options[k].index;
}

// The other alternative: nobody in the section starts at its floor f. The lowest then has a
// greater floor of its own, or rests on an item outside the section, which overlaps one of the
// items at f (a placeable one, so its top is above f). Nothing of the section lies below the
// least of these levels.
template <typename V, bool kRestricted>
void Search<V, kRestricted>::find_jump(Frame& frame) {
  const Child& p = frame.problem;
  const int j = frame.section;
  frame.jump = kNoJump;
  if (p.ceiling - frame.floor - load_[j] == 0) {
    frame.explain_gap = true;
    return;
  }
  int left = j, right = j;  // sections in which the items at the floor live
  for (int k = 0; k < frame.option_count; ++k) {
    left = std::min(left, p.items[frame.options[k]].first);
    right = std::max(right, p.items[frame.options[k]].last);
  }
  V level = std::numeric_limits<V>::max();
  for (int i = 0; i < p.count; ++i) {
    const Node& item = p.items[i];
    const bool inside = item.first <= j && j <= item.last;
    if (inside && item.floor > frame.floor) level = std::min(level, item.floor);
    if (!inside && item.first <= right && item.last >= left) {
      level = std::min(level, static_cast<V>(item.floor + item.size));
    }
  }
  if (level == std::numeric_limits<V>::max()) return;
  if (!options_.gap_jump) level = static_cast<V>(frame.floor + 1);
  if (level > p.ceiling - load_[j]) {
    frame.explain_gap = true;
    return;
  }
  frame.jump = level;
}

// Makes child_ from `problem`: without item `skip`, and with the floors of the affected items
// below `floor` raised to it. The order by descending floor is kept by a merge: items at or above
// the level, then the raised ones, then the rest. Returns false (with a conflict) if an item is
// raised above its latest offset.
template <typename V, bool kRestricted>
template <typename Affected>
bool Search<V, kRestricted>::raise(const Child& problem, int skip, V floor, Affected affected,
                                   IdSet raised) {
  raised.clear();
  child_ = problem;
  child_.mark = arena_.mark();
  child_.items = arena_.take<Node>(problem.count);
  Node* out = child_.items;
  const Node* in = problem.items;
  int i = 0;
  for (; i < problem.count && in[i].floor >= floor; ++i) {
    if (i != skip) *out++ = in[i];
  }
  Node* const first_raised = out;
  int held = 0;
  for (; i < problem.count; ++i) {
    if (i == skip) continue;
    if (!affected(in[i])) {
      held_[held++] = in[i];
      continue;
    }
    *out = in[i];
    out->floor = legal_floor(floor, in[i].id);
    raised.add(in[i].id);
    if constexpr (kRestricted) {
      if (out->floor > world_->latest[source_[out->id]]) {
        conflict_.clear();
        conflict_.add(out->id);
        arena_.release(child_.mark);
        return false;
      }
    }
    ++out;
  }
  out = std::copy(held_.begin(), held_.begin() + held, out);
  if constexpr (kRestricted) {
    // Rounding sends raised items to different levels, some above untouched ones.
    if (first_raised != out) {
      std::stable_sort(child_.items, out,
                       [](const Node& a, const Node& b) { return a.floor > b.floor; });
    }
  }
  child_.count = static_cast<int>(out - child_.items);
  return true;
}

template <typename V, bool kRestricted>
bool Search<V, kRestricted>::place_child(const Frame& frame, const Node& placed) {
  offsets_[placed.id] = frame.floor;
  const auto overlaps = [&](const Node& item) {
    return item.first <= placed.last && placed.first <= item.last;
  };
  return raise(frame.problem, frame.options[frame.next - 1],
               static_cast<V>(frame.floor + placed.size), overlaps, frame.raised);
}

template <typename V, bool kRestricted>
bool Search<V, kRestricted>::raise_section(const Frame& frame) {
  const int j = frame.section;
  const auto inside = [j](const Node& item) { return item.first <= j && j <= item.last; };
  return raise(frame.problem, -1, frame.jump, inside, frame.raised);
}

template class Search<std::int32_t, false>;
template class Search<std::int64_t, false>;
template class Search<std::int64_t, true>;

}  // namespace memplan::exact
