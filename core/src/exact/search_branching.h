// Part of search_machine.h: which section a node branches on, which items may rest on its floor,
// and the children.
#pragma once

#include <algorithm>
#include <limits>

#include "exact/search.h"
#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan::exact {

// Options by section, where only sections with the least floor of all can be chosen: nothing slips
// below that.
template <typename V>
void Search<V>::count_lowest(const Child& p) {
  std::fill(choices_.begin(), choices_.begin() + p.sections, 0);
  const V lowest = p.items[p.count - 1].floor;
  for (int i = p.count - 1; i >= 0 && p.items[i].floor == lowest; --i) {
    const Node item = p.items[i];
    for (int j = item.first; j <= item.last; ++j) ++choices_[j];
  }
}

// Finds lowest_ for each section, the item with the least floor (the last of several), floor_, its
// floor, and top_, the least top that an item of it could have; and is_lowest_ for each item.
template <typename V>
void Search<V>::find_floors(const Child& p) {
  V* const top = top_.data();
  std::int32_t* const lowest = lowest_.data();
  std::fill(top, top + p.sections, std::numeric_limits<V>::max());
  for (int i = 0; i < p.count; ++i) {
    const Node item = p.items[i];
    const V item_top = static_cast<V>(item.floor + item.size);
    for (int j = item.first; j <= item.last; ++j) {
      lowest[j] = i;
      top[j] = top[j] < item_top ? top[j] : item_top;
    }
  }
  std::fill(is_lowest_.begin(), is_lowest_.begin() + p.count, 0);
  for (int j = 0; j < p.sections; ++j) {
    is_lowest_[lowest[j]] = 1;
    floor_[j] = p.items[lowest[j]].floor;
  }
}

// Options by section: the items that have the least floor in it.
template <typename V>
void Search<V>::count_at_floors(const Child& p) {
  const V* const floor = floor_.data();
  std::int32_t* const choices = choices_.data();
  std::fill(choices, choices + p.sections, 0);
  for (int i = 0, end = 0; i < p.count; i = end) {
    bool any = false;  // of the items at one floor
    for (; end < p.count && p.items[end].floor == p.items[i].floor; ++end) {
      any = any || is_lowest_[end] != 0;
    }
    for (int k = any ? i : end; k < end; ++k) {
      const Node item = p.items[k];
      for (int j = item.first; j <= item.last; ++j) choices[j] += floor[j] == item.floor ? 1 : 0;
    }
  }
}

// Whether nothing could slip below an item with the least floor of the section.
template <typename V>
bool Search<V>::is_eligible(const Child& p, int section) const {
  const V floor = floor_[section];
  for (int i = lowest_[section]; i >= 0 && p.items[i].floor == floor; --i) {
    const Node& item = p.items[i];
    if (section < item.first || item.last < section) continue;
    for (int j = item.first; j <= item.last; ++j) {
      if (top_[j] <= floor) return false;
    }
  }
  return true;
}

// A feasible problem has a plan in which every item lies at its floor or rests on another. In
// section j with least floor f, one of the items with that floor starts at f, or the lowest item
// of j lies higher. An item at its floor has all that overlap it above, if nothing fits below it
// ("placeable": no overlapping item could have its top at or below that floor). A section is
// eligible if that holds for all its items at f; the one with the least floor of all always is.
template <typename V>
void Search<V>::choose_section(Frame& frame) {
  const Child& p = frame.problem;
  const bool lowest_only = strategy_.floor_first();
  const V lowest = p.items[p.count - 1].floor;
  if (lowest_only) {
    count_lowest(p);
  } else {
    find_floors(p);
    count_at_floors(p);
  }
  double best[3] = {0, 0, 0};
  int chosen = -1;
  for (int k = 0; k < p.sections; ++k) {
    const int j = strategy_.from_right ? p.sections - 1 - k : k;
    if (choices_[j] == 0) continue;
    const V level = lowest_only ? lowest : floor_[j];
    const V room = static_cast<V>(p.ceiling - level - load_[j]);
    const double slack = static_cast<double>(room);
    const double options = choices_[j] + (room > 0 ? 1 : 0);
    const double floor = static_cast<double>(level);
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
    // Looked at last, since it costs more than the key.
    if (!lowest_only && !is_eligible(p, j)) continue;
    std::copy(key, key + 3, best);
    chosen = j;
  }
  MEMPLAN_ASSERT(chosen >= 0);
  frame.section = chosen;
  frame.floor = lowest_only ? lowest : floor_[chosen];
}

template <typename V>
double Search<V>::value_key(const Node& item) const {
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
template <typename V>
void Search<V>::order_options(Frame& frame) {
  const Child& p = frame.problem;
  candidates_.clear();
  // Items come by descending floor: those at the section's floor are one run near the end.
  for (int i = p.count - 1; i >= 0; --i) {
    const Node& item = p.items[i];
    if (item.floor > frame.floor) break;
    if (item.floor < frame.floor || item.first > frame.section || item.last < frame.section) {
      continue;
    }
    const auto twin = [&](const Ranked& o) {
      const Node& other = p.items[index_[o.row]];
      if (restricted() && !same_legal_offsets(other.id, item.id)) return false;
      return other.first == item.first && other.last == item.last && other.size == item.size;
    };
    auto& options = candidates_;
    if (options_.twins && std::any_of(options.begin(), options.end(), twin)) continue;
    options.push_back({descending(value_key(item) * noise_[item.id]), item.id});
    index_[item.id] = i;
  }
  sort_ranked(candidates_.data(), candidates_.data() + candidates_.size());
  frame.option_count = static_cast<int>(candidates_.size());
  frame.options = arena_.take<int>(candidates_.size());
  for (int k = 0; k < frame.option_count; ++k) frame.options[k] = index_[candidates_[k].row];
}

//     address              |section|
//           |     +--------|---w---|--+      the floor of w is f. If it does not start there, it
//     level +--+--+----+---|-------|--+      rests on something outside the section, and v is the
//           |  |   v   |   |       |         first that can carry it
//         f +--+-------+---|-------|--
//           +-------------------------------- time
//
// The other alternative: no item of the section starts at its floor f. The lowest then has a
// greater floor of its own, or rests on an item outside the section, which overlaps one of the
// items at f (a placeable one, so its top is above f). Nothing of the section lies below the least
// of these levels.
template <typename V>
void Search<V>::find_jump(Frame& frame) {
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

// Sorts by descending floor. The sort is stable, so that equal items keep their order.
template <typename V>
void Search<V>::sort_by_floor(Node* items, int count) {
  const auto rises = [](const Node& a, const Node& b) { return a.floor < b.floor; };
  if (std::adjacent_find(items, items + count, rises) == items + count) return;
  for (int i = 0; i < count; ++i) by_floor_[i] = {-items[i].floor, i};
  sort_ranked(by_floor_.data(), by_floor_.data() + count);
  std::copy(items, items + count, held_.begin());
  MEMPLAN_ASSERT(count <= static_cast<int>(held_.size()));
  for (int i = 0; i < count; ++i) items[i] = held_[by_floor_[i].row];
}

// Makes child_ from `problem`: without item `skip`, and with floors below `floor` raised to it for
// the items that live in one of the sections from `first` to `last`. The order by descending floor
// is kept by a merge: items at or above the level, then the raised ones, then the rest. Returns
// false (with a conflict) if an item is raised above its latest offset.
template <typename V>
bool Search<V>::raise(const Child& problem, int skip, V floor, int first, int last, IdSet raised) {
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
  int from = problem.sections, to = -1;
  for (; i < problem.count; ++i) {
    if (i == skip) continue;
    if (in[i].last < first || last < in[i].first) {
      held_[held++] = in[i];
      continue;
    }
    *out = in[i];
    out->floor = legal_floor(floor, in[i].id);
    raised.add(in[i].id);
    from = std::min(from, in[i].first);
    to = std::max(to, in[i].last);
    if (restricted() && out->floor > world_->latest[source_[out->id]]) {
      conflict_.clear();
      conflict_.add(out->id);
      arena_.release(child_.mark);
      return false;
    }
    MEMPLAN_ASSERT(out->floor >= floor && floor > in[i].floor);
    ++out;
  }
  out = std::copy(held_.begin(), held_.begin() + held, out);
  child_.count = static_cast<int>(out - child_.items);
  // Rounding sends raised items to different levels, some above untouched ones.
  if (restricted() && first_raised != out) sort_by_floor(child_.items, child_.count);
  MEMPLAN_ASSERT(child_.count == problem.count - (skip < 0 ? 0 : 1));
  child_.risen_first = to < 0 ? 0 : from;
  child_.risen_last = to;
  return true;
}

template <typename V>
bool Search<V>::place_child(const Frame& frame, const Node& placed) {
  offsets_[placed.id] = frame.floor;
  MEMPLAN_ASSERT(placed.floor == frame.floor);
  return raise(frame.problem, frame.options[frame.next - 1],
               static_cast<V>(frame.floor + placed.size), placed.first, placed.last, frame.raised);
}

template <typename V>
bool Search<V>::raise_section(const Frame& frame) {
  return raise(frame.problem, -1, frame.jump, frame.section, frame.section, frame.raised);
}

}  // namespace memplan::exact
