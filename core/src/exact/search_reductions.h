// Part of search_machine.h: what a node can decide without a choice, and the bound.
#pragma once

#include <algorithm>
#include <limits>

#include "exact/search.h"
#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan::exact {

template <typename V>
typename Search<V>::Reduction Search<V>::reduce(Child& problem, IdSet& resolved) {
  while (true) {
    if (problem.count == 0) return Reduction::kEmpty;
    if (contract(problem) > 1 && options_.decomposition) return Reduction::kSplit;
    // Swapping a full-span item with its neighbours moves them by its size: not allowed where
    // one of them is pinned, or aligned to something else.
    if (restricted() || !options_.full_span) return Reduction::kDone;
    bool changed = false;
    if (!place_full_span(problem, resolved, changed)) return Reduction::kUnsat;
    if (!changed) return Reduction::kDone;
  }
}

// Drops every section whose items are all in a kept neighbour: it implies nothing that the
// neighbour does not. A section is kept if an item began since the last kept one and one ends in
// it. Returns the number of parts between times that no item crosses.
template <typename V>
int Search<V>::contract(Child& problem) {
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
    MEMPLAN_ASSERT(alive >= 0);
    if (ends_[j] > 0 && alive == 0) ++parts;
  }
  if (kept == sections) return parts;
  std::int32_t* names = arena_.take<std::int32_t>(kept);
  for (int j = 0; j < kept; ++j) names[j] = problem.section[choices_[j]];
  problem.section = names;
  problem.sections = kept;
  // first -> the first kept section at or after it; last -> the last kept one at or before it.
  map_[sections] = kept;
  problem.risen_first = map_[problem.risen_first];
  problem.risen_last = map_[problem.risen_last + 1] - 1;
  for (int i = 0; i < problem.count; ++i) {
    Node& item = problem.items[i];
    item.first = map_[item.first];
    item.last = map_[item.last + 1] - 1;
    MEMPLAN_ASSERT(item.first <= item.last);  // it keeps a section
  }
  return parts;
}

// An item over all sections overlaps every other, so it can be moved past its neighbours if they
// give way by its size: to the ceiling if no floor is above its own (those that come down by its
// size still lie above its old place), to its floor if no floor is below its own (those that go
// up only rise). Returns false if its place is above what the ceiling allows.
template <typename V>
bool Search<V>::place_full_span(Child& problem, IdSet& resolved, bool& changed) {
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
      MEMPLAN_ASSERT(resolved.has(item.id) && offsets_[item.id] >= 0);
      problem.risen_first = 0;
      problem.risen_last = problem.sections - 1;
      again = true;
      break;
    }
  }
  return true;
}

// Cuts a contracted problem at the times that no item crosses; the tightest part is solved first,
// because it is the most likely to fail.
template <typename V>
typename Search<V>::Step Search<V>::open_split(const Child& problem, const IdSet& resolved) {
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
  MEMPLAN_ASSERT(parts > 1 && choices_[0] == 0);
  choices_[parts] = sections;

  Frame frame;
  frame.problem = problem;
  frame.resolved = resolved;
  frame.split = true;
  frame.part_count = parts;
  frame.parts = arena_.take<Child>(parts);
  Ranked* by_slack = arena_.take<Ranked>(parts);
  for (int p = 0; p < parts; ++p) {
    Child part;
    part.sections = choices_[p + 1] - choices_[p];
    part.section = problem.section + choices_[p];
    part.ceiling = problem.ceiling;
    const int from = std::max(problem.risen_first, choices_[p]);
    const int to = std::min(problem.risen_last, choices_[p + 1] - 1);
    if (from <= to) {
      part.risen_first = from - choices_[p];
      part.risen_last = to - choices_[p];
    }
    V slack = std::numeric_limits<V>::max();
    for (int j = choices_[p]; j < choices_[p + 1]; ++j) {
      slack = std::min<V>(slack, static_cast<V>(problem.ceiling - floor_[j] - load_[j]));
    }
    by_slack[p] = {slack, p};
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
    MEMPLAN_ASSERT(p == map_[item.last]);  // no item crosses from part to part
    item.first -= choices_[p];
    item.last -= choices_[p];
    frame.parts[p].items[frame.parts[p].count++] = item;
  }
  sort_ranked(by_slack, by_slack + parts);
  Child* sorted = arena_.take<Child>(parts);
  for (int p = 0; p < parts; ++p) sorted[p] = frame.parts[by_slack[p].row];
  frame.parts = sorted;
  frames_.push_back(frame);
  return Step::kAdvance;
}

// With one section and no restriction, stacking by ascending floor is a plan: bound_holds() has
// shown that it fits.
template <typename V>
void Search<V>::place_stack(const Child& problem) {
  V at = 0;
  for (int i = problem.count - 1; i >= 0; --i) {
    at = std::max(at, problem.items[i].floor);
    offsets_[problem.items[i].id] = at;
    at = static_cast<V>(at + problem.items[i].size);
    MEMPLAN_ASSERT(at <= problem.ceiling);
  }
}

// ---- the bound

// In every section, items with floor >= f need their sizes above f: for a single section this is
// exact (one machine with release dates). Looked at only where floors rose: elsewhere a section
// has at most the items that it had when the bound held, with the same floors. (An item that goes
// to the ceiling takes its size from both sides.)
//
// Leaves load_ for the choice of a branch. On failure the conflict is the items seen so far in the
// section that overflows.
template <typename V>
bool Search<V>::bound_holds(const Child& problem) {
  if (restricted() && !floors_hold(problem)) return false;
  const int sections = problem.sections;
  const int from = options_.release_dates ? problem.risen_first : 0;
  const int to = options_.release_dates ? problem.risen_last : sections - 1;
  V* const load = load_.data();
  std::fill(load, load + sections, V{0});
  for (int i = 0; i < problem.count; ++i) {
    const Node item = problem.items[i];  // a copy: the sums below could alias it
    const int first = std::max(item.first, from), last = std::min(item.last, to);
    // Without release dates only the least floor counts, which is that of the last item.
    const V base = options_.release_dates || i + 1 == problem.count ? item.floor : V{0};
    const V room = static_cast<V>(problem.ceiling - base);
    V over = 0;  // negative as soon as one of the differences is
    for (int j = first; j <= last; ++j) {
      load[j] = static_cast<V>(load[j] + item.size);
      over |= static_cast<V>(room - load[j]);
    }
    if (over >= 0) continue;
    int worst = first;
    for (int j = first; j <= last; ++j) {
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
  if (from > 0 || to < sections - 1) sum_loads(problem);
  return true;
}

template <typename V>
void Search<V>::sum_loads(const Child& problem) {
  V* const load = load_.data();
  std::fill(load, load + problem.sections + 1, V{0});
  for (int i = 0; i < problem.count; ++i) {
    const Node item = problem.items[i];
    load[item.first] = static_cast<V>(load[item.first] + item.size);
    load[item.last + 1] = static_cast<V>(load[item.last + 1] - item.size);
  }
  for (int j = 1; j < problem.sections; ++j) load[j] = static_cast<V>(load[j] + load[j - 1]);
}

// Restricted problems only: an item whose floor has passed its latest offset is a conflict.
template <typename V>
bool Search<V>::floors_hold(const Child& problem) {
  for (int i = 0; i < problem.count; ++i) {
    const Node& item = problem.items[i];
    if (item.floor <= world_->latest[source_[item.id]]) continue;
    conflict_.clear();
    conflict_.add(item.id);
    return false;
  }
  return true;
}

template <typename V>
std::uint64_t Search<V>::key_of(const Child& problem) const {
  std::uint64_t key = 0;
  for (int i = 0; i < problem.count; ++i) key ^= zobrist_[problem.items[i].id];
  return key;
}

}  // namespace memplan::exact
