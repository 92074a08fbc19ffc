#include "prover/model.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace memplan::prover {

namespace {

// Above these, arcs and the two tables of items x items would not fit in a few tens of MB.
constexpr std::int64_t kMaxItems = 2048;
constexpr std::int64_t kMaxPairs = 2'000'000;
// Cliques that are further apart share less. Two instead of one costs a tenth more time than it
// saves.
constexpr int kMaxCutDistance = 1;

constexpr std::int64_t kMaxMembers = 4'000'000;  // of all cliques together

// The live sets of the sections that the component covers, in order of time.
std::vector<std::vector<std::int32_t>> live_sets(const exact::Task& task) {
  const Items& world = *task.world;
  SectionIdx begin = world.section_count, end = 0;
  for (const ItemIdx i : task.source) {
    begin = std::min(begin, world.first(i));
    end = std::max(end, world.last(i) + 1);
  }
  std::vector<std::vector<std::int32_t>> live(std::max(0, end - begin));
  for (std::size_t id = 0; id < task.source.size(); ++id) {
    for (const Span* span = world.begin(task.source[id]); span != world.end(task.source[id]);
         ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) {
        live[s - begin].push_back(static_cast<std::int32_t>(id));
      }
    }
  }
  return live;
}

bool contains(const std::vector<std::int32_t>& set, const std::vector<std::int32_t>& subset) {
  return std::includes(set.begin(), set.end(), subset.begin(), subset.end());
}

}  // namespace

bool Model::suits(const exact::Task& task) {
  const auto n = static_cast<std::int64_t>(task.source.size());
  if (n > kMaxItems || task.world->windowed) return false;
  std::int64_t members = 0, pairs = 0;
  for (const ItemIdx i : task.source) {
    for (const Span* span = task.world->begin(i); span != task.world->end(i); ++span) {
      members += span->last - span->first + 1;
    }
  }
  if (members > kMaxMembers) return false;
  // An upper bound is enough: a pair is counted in each section that the later of them enters.
  for (const auto& set : live_sets(task)) {
    pairs = std::max(pairs, static_cast<std::int64_t>(set.size()));
  }
  return n * pairs <= 2 * kMaxPairs || n * (n - 1) / 2 <= kMaxPairs;
}

Model::Model(const exact::Task& task, const ProverOptions& options, bool exact_bytes)
    : restricted(task.restricted), unit(task.unit), world(task.world), rows(task.source) {
  bool rounds = false;  // sizes are rounded up to the unit
  for (const ItemIdx i : rows) rounds = rounds || world->size[i] % unit != 0;
  if (rounds && exact_bytes) restricted = true;
  if (restricted) unit = 1;
  auto live = live_sets(task);
  // Upside down, or put at the bottom, the topmost buffer would need the room that its rounding
  // does not have.
  const bool free = !restricted && !rounds;
  find_core(free && options.foundation, &live);
  find_cliques(live);
  find_pairs();
  if (options.cuts) find_cuts();
  if (!options.symmetry) return;
  find_twins();
  if (free) find_upright();
}

// What is to be searched: all rows but those of the foundation.
void Model::find_core(bool free, std::vector<std::vector<std::int32_t>>* live) {
  const std::size_t n = rows.size();
  std::vector<Bytes> room;
  for (const ItemIdx i : rows) room.push_back((world->size[i] + unit - 1) / unit);
  if (free) {
    foundation = lay_foundation(*live, room);
  } else {
    foundation.is_laid.assign(n, 0);
    for (const ItemIdx i : rows) foundation.floor.push_back(world->earliest[i]);
  }
  std::vector<std::int32_t> item(n, -1);
  for (std::size_t row = 0; row < n; ++row) {
    if (foundation.is_laid[row] != 0) continue;
    item[row] = items++;
    row_of.push_back(static_cast<std::int32_t>(row));
    source.push_back(rows[row]);
    size.push_back(room[row]);
    floor.push_back(foundation.floor[row]);
  }
  extent = size;
  for (auto& set : *live) {
    std::size_t kept = 0;
    for (const std::int32_t row : set) {
      if (item[row] >= 0) set[kept++] = item[row];
    }
    set.resize(kept);
  }
}

// Live sets that another one contains say nothing new. The sweep has left only maximal ones, but
// not where buffers have gaps, or where some have gone into the foundation.
void Model::find_cliques(const std::vector<std::vector<std::int32_t>>& live) {
  std::vector<std::size_t> order(live.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return live[a].size() > live[b].size(); });
  std::vector<std::size_t> kept;
  std::vector<std::vector<std::size_t>> kept_with(items);
  for (const std::size_t s : order) {
    if (live[s].size() < 2) break;
    const auto& rivals = kept_with[live[s].front()];
    if (std::any_of(rivals.begin(), rivals.end(),
                    [&](std::size_t k) { return contains(live[k], live[s]); })) {
      continue;
    }
    kept.push_back(s);
    for (const std::int32_t i : live[s]) kept_with[i].push_back(s);
  }
  std::sort(kept.begin(), kept.end());
  std::vector<std::vector<std::int32_t>> of(items);
  for (const std::size_t s : kept) {
    for (const std::int32_t i : live[s]) of[i].push_back(cliques.count());
    cliques.values.insert(cliques.values.end(), live[s].begin(), live[s].end());
    cliques.close();
  }
  for (const auto& list : of) {
    cliques_of.values.insert(cliques_of.values.end(), list.begin(), list.end());
    cliques_of.close();
    whole.push_back(list.empty() ||
                    list.back() - list.front() + 1 == static_cast<std::int32_t>(list.size()));
  }
}

void Model::find_pairs() {
  arc.assign(static_cast<std::size_t>(items) * items, kNoArc);
  const auto at = [&](int u, int v) -> Half& {
    return arc[static_cast<std::size_t>(u) * items + v];
  };
  for (int c = 0; c < cliques.count(); ++c) {
    for (const auto* u = cliques.first(c); u != cliques.last(c); ++u) {
      for (const auto* v = cliques.first(c); v != u; ++v) at(*v, *u) = 0;
    }
  }
  for (int u = 0; u < items; ++u) {
    for (int v = u + 1; v < items; ++v) {
      if (at(u, v) == kNoArc) continue;
      at(u, v) = 2 * items + arcs;
      at(v, u) = at(u, v) ^ 1;
      tail.push_back(u);
      tail.push_back(v);
      extent.push_back(-1);
      arcs += 2;
    }
  }
  for (int u = 0; u < items; ++u) {
    for (int v = 0; v < items; ++v) {
      if (at(u, v) != kNoArc) neighbours.values.push_back(v);
    }
    neighbours.close();
  }
}

// Neighbours in time: cliques are in the order of their sections.
void Model::find_cuts() {
  std::vector<std::vector<std::int32_t>> of(items);
  for (int a = 0; a < cliques.count(); ++a) {
    for (int b = a + 1; b < cliques.count() && b <= a + kMaxCutDistance; ++b) {
      std::vector<std::int32_t> both;
      std::set_intersection(cliques.first(a), cliques.last(a), cliques.first(b), cliques.last(b),
                            std::back_inserter(both));
      if (both.empty()) continue;
      Cut cut{{a, b}, 0};
      for (const std::int32_t i : both) {
        cut.both += size[i];
        of[i].push_back(static_cast<std::int32_t>(cuts.size()));
      }
      for (const int side : {0, 1}) {
        const int c = cut.cliques[side];
        std::set_difference(cliques.first(c), cliques.last(c), both.begin(), both.end(),
                            std::back_inserter(cut_sides[side].values));
        cut_sides[side].close();
      }
      cuts.push_back(cut);
    }
  }
  for (const auto& list : of) {
    cuts_of.values.insert(cuts_of.values.end(), list.begin(), list.end());
    cuts_of.close();
  }
}

// Items that can be exchanged without changing the problem. They are live together, so one of
// them is below the other, and it may be the one with the lower index: sorting the places of a
// class of twins by index turns any plan into such a one.
void Model::find_twins() {
  const auto same = [&](int a, int b) {
    const ItemIdx i = source[a], k = source[b];
    return world->size[i] == world->size[k] && world->alignment[i] == world->alignment[k] &&
           world->earliest[i] == world->earliest[k] && world->latest[i] == world->latest[k] &&
           std::equal(
               world->begin(i), world->end(i), world->begin(k), world->end(k),
               [](const Span& s, const Span& t) { return s.first == t.first && s.last == t.last; });
  };
  for (int a = 0; a < items; ++a) {
    for (const auto* b = neighbours.first(a); b != neighbours.last(a); ++b) {
      if (a < *b && same(a, *b)) twins.emplace_back(a, *b);
    }
  }
}

// Turned upside down, a plan is a plan. One pair may therefore be taken to lie one way round; the
// turn also reverses twins, but these can be sorted again as long as the pair is none of them.
void Model::find_upright() {
  std::vector<bool> twin(items, false);
  for (const auto& [a, b] : twins) twin[a] = twin[b] = true;
  Bytes best = 0;
  for (int u = 0; u < items; ++u) {
    for (const auto* v = neighbours.first(u); v != neighbours.last(u); ++v) {
      const Bytes both = size[u] + size[*v];
      if (*v < u || twin[u] || twin[*v] || both <= best) continue;
      best = both;
      upright = {u, *v};
    }
  }
}

std::vector<std::int32_t> Model::laid_below(int item) const {
  const auto meet = [&](ItemIdx i, ItemIdx k) {
    return std::any_of(world->begin(i), world->end(i), [&](const Span& s) {
      return std::any_of(world->begin(k), world->end(k),
                         [&](const Span& t) { return s.first <= t.last && t.first <= s.last; });
    });
  };
  std::vector<std::int32_t> below;
  for (const std::int32_t id : foundation.laid) {
    if (meet(rows[id], source[item])) below.push_back(id);
  }
  return below;
}

Bytes Model::latest(int item, Bytes limit) const {
  const ItemIdx i = source[item];
  const Bytes room = limit - world->size[i];
  if (room < 0) return -1;
  return restricted ? world->legal_below(i, room) : room / unit;
}

Bytes Model::round_restricted(Half h, Bytes value) const {
  const int item = h >> 1;
  if ((h & 1) == 0) return world->legal_above(source[item], value);
  return -world->legal_below(source[item], -value - size[item]) - size[item];
}

Bytes Model::unround_restricted(Half h, Bytes value) const {
  const int item = h >> 1;
  if ((h & 1) == 0) return world->legal_below(source[item], value - 1) + 1;
  const Bytes offset = -value - size[item];
  return -(world->legal_above(source[item], offset + 1) - 1) - size[item];
}

}  // namespace memplan::prover
