#include "exact/task.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan::exact {

namespace {

// Whether offsets are free of restrictions, and the unit that all of them may then be assumed to be
// multiples of. Items resting on one another from 0 lie at sums of sizes. If every size (rounded up
// to the alignment, where all items share one) is a multiple of every alignment, those sums are
// aligned by themselves. Rounding sizes up is exact only if the ceiling is a multiple as well: the
// topmost item needs no room for its rounding.
struct Grid {
  bool free = false;
  Bytes rounding = 1;
  Bytes unit = 1;
};

Grid find_grid(const Items& world) {
  Grid grid;
  if (!world.reserved.empty() || world.grouped) return grid;
  Bytes common = 0;
  Bytes coarsest = 1;
  bool same = true;
  for (ItemIdx i = 0; i < world.count(); ++i) {
    if (world.earliest[i] != 0) return grid;
    common = std::gcd(common, world.size[i]);
    coarsest = std::max(coarsest, world.alignment[i]);
    same = same && world.alignment[i] == world.alignment[0];
  }
  bool divides = true;
  for (ItemIdx i = 0; i < world.count(); ++i) {
    divides = divides && common % world.alignment[i] == 0;
  }
  if (!divides) {
    if (!same || world.capacity % coarsest != 0) return grid;
    grid.rounding = coarsest;
  }
  grid.unit = 0;
  for (ItemIdx i = 0; i < world.count(); ++i) {
    const Bytes room = (world.size[i] + grid.rounding - 1) / grid.rounding * grid.rounding;
    grid.unit = std::gcd(grid.unit, room);
    // A pin at 0 makes earliest == latest == 0 without being seen above.
    const Bytes latest = (world.capacity - world.size[i]) / world.alignment[i] * world.alignment[i];
    if (world.latest[i] != latest) return grid;
  }
  grid.free = true;
  return grid;
}

auto shape(const Item<Bytes>& item, const Task& task) {
  const ItemIdx i = task.source[item.id];
  return std::make_tuple(item.first, item.last, item.size, task.world->alignment[i],
                         task.world->earliest[i], task.world->latest[i], item.id);
}

// Numbers the items in an order that depends on their shapes only, so that a shuffled problem is
// solved in the same number of nodes.
void sort_by_shape(Task& task) {
  std::sort(task.items.begin(), task.items.end(), [&](const Item<Bytes>& a, const Item<Bytes>& b) {
    return shape(a, task) < shape(b, task);
  });
  std::vector<ItemIdx> source;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    source.push_back(task.source[task.items[i].id]);
    task.items[i].id = static_cast<std::int32_t>(i);
  }
  task.source = source;
}

Bytes slack(const Task& task) {
  std::vector<Bytes> load(std::max(task.sections, 1), 0);
  for (const Item<Bytes>& item : task.items) {
    for (SectionIdx s = item.first; s <= item.last; ++s) load[s] += item.size;
  }
  return task.ceiling - *std::max_element(load.begin(), load.end());
}

// From the first to the last section of an item, gaps included; (0, -1) for one that only has
// listed conflicts.
std::pair<SectionIdx, SectionIdx> stretch(const Items& world, ItemIdx i) {
  if (world.begin(i) == world.end(i)) return {0, -1};
  std::pair<SectionIdx, SectionIdx> result{world.begin(i)->first, world.begin(i)->last};
  for (const Span* span = world.begin(i); span != world.end(i); ++span) {
    result = {std::min(result.first, span->first), std::max(result.second, span->last)};
  }
  return result;
}

using Component = std::vector<ItemIdx>;

// Joins the components that a listed conflict links. A group is one item already.
std::vector<Component> joined(const Items& world, std::vector<Component> components) {
  std::vector<std::int32_t> parent(components.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&parent](std::int32_t c) {
    while (parent[c] != c) c = parent[c] = parent[parent[c]];
    return c;
  };
  std::vector<std::int32_t> of(world.size.size());
  for (std::size_t c = 0; c < components.size(); ++c) {
    for (const ItemIdx i : components[c]) of[i] = static_cast<std::int32_t>(c);
  }
  for (const auto& [p, q] : world.barred) {
    const std::int32_t a = root(of[world.parts[p].item]), b = root(of[world.parts[q].item]);
    parent[std::max(a, b)] = std::min(a, b);
  }
  std::vector<Component> result;
  std::vector<std::size_t> place(components.size());
  for (std::size_t c = 0; c < components.size(); ++c) {
    const std::int32_t to = root(static_cast<std::int32_t>(c));
    if (to == static_cast<std::int32_t>(c)) {
      place[c] = result.size();
      result.emplace_back();
    }
    Component& all = result[place[to]];
    all.insert(all.end(), components[c].begin(), components[c].end());
  }
  return result;
}

// Splits the items into components, between which there is no common time and no listed conflict.
std::vector<Component> components_of(const Items& world) {
  std::vector<Component> components;
  SectionIdx end = 0;  // of the component being filled
  for (const auto& [first, i] :
       ranked(world.size.size(), [&](ItemIdx item) { return stretch(world, item).first; })) {
    if (components.empty() || first >= end) {
      components.emplace_back();
      end = static_cast<SectionIdx>(first);
    }
    components.back().push_back(i);
    end = std::max(end, stretch(world, i).second + 1);
  }
  return world.barred.empty() ? components : joined(world, std::move(components));
}

Task make_task(const Items& world, const Grid& grid, const Component& component) {
  Task task;
  task.world = &world;
  task.restricted = !grid.free;
  task.unit = grid.free ? grid.unit : 1;
  task.ceiling = world.capacity / task.unit;
  SectionIdx begin = stretch(world, component.front()).first, end = begin;
  for (const ItemIdx i : component) {
    const auto [first, last] = stretch(world, i);
    begin = std::min(begin, first);
    end = std::max(end, last + 1);
  }
  task.sections = end - begin;
  for (const ItemIdx i : component) {
    const auto [first, last] = stretch(world, i);
    const Bytes room =
        grid.free ? (world.size[i] + grid.rounding - 1) / grid.rounding * grid.rounding / grid.unit
                  : world.size[i];
    const auto id = static_cast<std::int32_t>(task.items.size());
    task.items.push_back({world.earliest[i], room, first - begin, last - begin, id});
    task.source.push_back(i);
  }
  sort_by_shape(task);
  return task;
}

}  // namespace

bool check_invariants(const Task& task) {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(task.items.size() == task.source.size());
  MEMPLAN_ASSERT(task.unit > 0 && task.ceiling == task.world->capacity / task.unit);
  std::vector<ItemIdx> source = task.source;
  std::sort(source.begin(), source.end());
  MEMPLAN_ASSERT(std::adjacent_find(source.begin(), source.end()) == source.end());
  for (std::size_t id = 0; id < task.items.size(); ++id) {
    const Item<Bytes>& item = task.items[id];
    const ItemIdx i = task.source[id];
    MEMPLAN_ASSERT(item.id == static_cast<std::int32_t>(id));
    MEMPLAN_ASSERT(i >= 0 && i < task.world->count());
    MEMPLAN_ASSERT(0 <= item.first && item.first <= item.last + 1 && item.last < task.sections);
    MEMPLAN_ASSERT(item.floor == task.world->earliest[i] && item.size <= task.ceiling);
    // Sizes are at most rounded up to the unit, and restricted tasks do not round at all.
    MEMPLAN_ASSERT(item.size >= (task.world->size[i] + task.unit - 1) / task.unit);
    MEMPLAN_ASSERT(!task.restricted || (task.unit == 1 && item.size == task.world->size[i]));
  }
  return true;
}

std::vector<Task> make_tasks(const Items& world) {
  const Grid grid = find_grid(world);
  std::vector<Task> tasks;
  for (const Component& component : components_of(world)) {
    tasks.push_back(make_task(world, grid, component));
  }
  std::vector<Task> sorted;
  for (const auto& [room, t] :
       ranked(tasks.size(), [&tasks](std::int32_t task) { return slack(tasks[task]); })) {
    MEMPLAN_ASSERT(check_invariants(tasks[t]));
    sorted.push_back(std::move(tasks[t]));
  }
  return sorted;
}

Task reversed(const Task& task) {
  Task result = task;
  for (Item<Bytes>& item : result.items) {
    const std::int32_t first = task.sections - 1 - item.last;
    item.last = task.sections - 1 - item.first;
    item.first = first;
  }
  for (const Item<Bytes>& item : result.items) MEMPLAN_ASSERT(item.first >= 0);
  sort_by_shape(result);
  MEMPLAN_ASSERT(check_invariants(result));
  return result;
}

}  // namespace memplan::exact
