#include "exact/task.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace memplan::exact {

namespace {

// What all offsets may be thought to be multiples of, or 0 where items differ in what they ask.
// Items resting on one another from 0 lie at sums of sizes. If every size (rounded up to the
// alignment, where all items share one) is a multiple of every alignment, those sums are aligned
// by themselves. Rounding sizes up is exact only if the ceiling is a multiple as well: the
// topmost item needs no room for its rounding.
struct Grid {
  bool free = false;
  Bytes rounding = 1;
  Bytes unit = 1;
};

Grid find_grid(const Items& world) {
  Grid grid;
  if (!world.reserved.empty()) return grid;
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
                         task.world->earliest[i], task.world->latest[i]);
}

// Gives ids in an order that depends on the items' shapes only: a shuffled problem is the same
// problem, and is solved in the same number of nodes.
void sort_by_shape(Task& task) {
  std::stable_sort(
      task.items.begin(), task.items.end(),
      [&](const Item<Bytes>& a, const Item<Bytes>& b) { return shape(a, task) < shape(b, task); });
  std::vector<ItemIdx> source;
  for (std::size_t i = 0; i < task.items.size(); ++i) {
    source.push_back(task.source[task.items[i].id]);
    task.items[i].id = static_cast<std::int32_t>(i);
  }
  task.source = source;
}

Bytes slack(const Task& task) {
  std::vector<Bytes> load(task.sections, 0);
  for (const Item<Bytes>& item : task.items) {
    for (SectionIdx s = item.first; s <= item.last; ++s) load[s] += item.size;
  }
  return task.ceiling - *std::max_element(load.begin(), load.end());
}

}  // namespace

std::vector<Task> make_tasks(const Items& world) {
  const Grid grid = find_grid(world);
  std::vector<ItemIdx> order(world.count());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](ItemIdx a, ItemIdx b) {
    return std::make_pair(world.first(a), a) < std::make_pair(world.first(b), b);
  });

  std::vector<Task> tasks;
  SectionIdx begin = 0, end = 0;  // of the component being filled
  for (const ItemIdx i : order) {
    if (tasks.empty() || world.first(i) >= end) {
      begin = end = world.first(i);
      tasks.emplace_back();
      tasks.back().world = &world;
      tasks.back().restricted = !grid.free;
      tasks.back().unit = grid.free ? grid.unit : 1;
      tasks.back().ceiling = world.capacity / tasks.back().unit;
    }
    Task& task = tasks.back();
    end = std::max(end, world.last(i) + 1);
    task.sections = end - begin;
    const Bytes room =
        grid.free ? (world.size[i] + grid.rounding - 1) / grid.rounding * grid.rounding / grid.unit
                  : world.size[i];
    const auto id = static_cast<std::int32_t>(task.items.size());
    task.items.push_back(
        {world.earliest[i], room, world.first(i) - begin, world.last(i) - begin, id});
    task.source.push_back(i);
  }
  std::vector<std::pair<Bytes, std::size_t>> by_slack;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    sort_by_shape(tasks[t]);
    by_slack.emplace_back(slack(tasks[t]), t);
  }
  std::sort(by_slack.begin(), by_slack.end());
  std::vector<Task> sorted;
  for (const auto& [room, t] : by_slack) sorted.push_back(std::move(tasks[t]));
  return sorted;
}

Task reversed(const Task& task) {
  Task result = task;
  for (Item<Bytes>& item : result.items) {
    const std::int32_t first = task.sections - 1 - item.last;
    item.last = task.sections - 1 - item.first;
    item.first = first;
  }
  sort_by_shape(result);
  return result;
}

}  // namespace memplan::exact
