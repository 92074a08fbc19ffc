#include "prover/model.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "util/invariants.h"

namespace memplan::prover {

namespace {

// Above these, arcs and the two tables of items x items would not fit in a few tens of MB.
constexpr std::int64_t kMaxItems = 2048;
constexpr std::int64_t kMaxPairs = 2'000'000;
constexpr std::int64_t kMaxMembers = 4'000'000;  // of all cliques together

const Span* first_span(const Items& world, const Piece& piece) {
  return world.begin(piece.part->item) + piece.part->span_begin;
}

const Span* last_span(const Items& world, const Piece& piece) {
  return world.begin(piece.part->item) + piece.part->span_end;
}

std::vector<Piece> pieces_of(const exact::Task& task) {
  const Items& world = *task.world;
  std::vector<Piece> pieces;
  for (std::size_t row = 0; row < task.source.size(); ++row) {
    const ItemIdx i = task.source[row];
    for (const Part* part = world.first_part(i); part != world.last_part(i); ++part) {
      if (part->size > 0) pieces.push_back({static_cast<std::int32_t>(row), part});
    }
  }
  return pieces;
}

// The pieces that are live in the sections that the component covers, in order of time.
std::vector<ItemSet> live_sets(const Items& world, const std::vector<Piece>& pieces) {
  SectionIdx begin = world.section_count, end = 0;
  for (const Piece& piece : pieces) {
    for (const Span* span = first_span(world, piece); span != last_span(world, piece); ++span) {
      begin = std::min(begin, span->first);
      end = std::max(end, span->last + 1);
    }
  }
  std::vector<ItemSet> live(std::max(0, end - begin));
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    for (const Span* span = first_span(world, pieces[k]); span != last_span(world, pieces[k]);
         ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) {
        live[s - begin].push_back(static_cast<std::int32_t>(k));
      }
    }
  }
  return live;
}

}  // namespace

bool Model::suits(const exact::Task& task) {
  const std::vector<Piece> pieces = pieces_of(task);
  const auto n = static_cast<std::int64_t>(pieces.size());
  if (n > kMaxItems || task.world->windowed) return false;
  std::int64_t members = 0, pairs = 0;
  for (const ItemIdx i : task.source) {
    for (const Span* span = task.world->begin(i); span != task.world->end(i); ++span) {
      members += span->last - span->first + 1;
    }
  }
  if (members > kMaxMembers) return false;
  if (n * (n - 1) / 2 <= kMaxPairs) return true;
  if (!task.world->barred.empty()) return false;
  // An upper bound is enough: a pair is counted in each section that the later of them enters.
  for (const ItemSet& set : live_sets(*task.world, pieces)) {
    pairs = std::max(pairs, static_cast<std::int64_t>(set.size()));
  }
  return n * pairs <= 2 * kMaxPairs;
}

Model::Model(const exact::Task& task, const ProverOptions& options, bool exact_bytes,
             const Halt& halt)
    : restricted(task.restricted), unit(task.unit), world(task.world), rows(task.source) {
  bool rounds = false;  // sizes are rounded up to the unit
  for (const ItemIdx i : rows) rounds = rounds || world->size[i] % unit != 0;
  if (rounds && exact_bytes) restricted = true;
  if (restricted) unit = 1;
  const std::vector<Piece> pieces = pieces_of(task);
  const bool has_gaps = std::any_of(pieces.begin(), pieces.end(), [](const Piece& piece) {
    return piece.part->span_end - piece.part->span_begin > 1;
  });
  std::vector<ItemSet> live = live_sets(*world, pieces);
  // The topmost buffer may have no room for its rounding. Turned upside down, or put at the bottom,
  // it would need that.
  const bool free = !restricted && !rounds;
  halted = !find_core(free && options.foundation, pieces, &live, halt);
  if (halted) return;
  find_bodies();
  // A proof can speak only of items that are live at one time, so that its cliques do not grow.
  const bool grow = has_gaps && !exact_bytes;
  halted = !find_pairs(maximal(live, static_cast<std::size_t>(items)), grow, halt) ||
           (options.cuts && !find_cuts(halt));
  if (halted) return;
  MEMPLAN_ASSERT(check_invariants());
  if (!options.symmetry) return;
  halted = !find_twins(halt);
  if (halted) return;
  for (const auto& [a, b] : twins) MEMPLAN_ASSERT(a < b && arc_of(a, b) != kNoArc);
  if (free) find_upright();
}

bool Model::check_invariants() const {
  MEMPLAN_ASSERT(static_cast<int>(size.size()) == items && static_cast<int>(tail.size()) == arcs);
  MEMPLAN_ASSERT(static_cast<int>(extent.size()) == items + arcs / 2);
  MEMPLAN_ASSERT(neighbours.count() == items && cliques_of.count() == items);
  for (int u = 0; u < items; ++u) {
    MEMPLAN_ASSERT(size[u] > 0 && floor[u] >= lead[u] && arc_of(u, u) == kNoArc);
    MEMPLAN_ASSERT(std::is_sorted(neighbours.first(u), neighbours.last(u)));
    for (const auto* v = neighbours.first(u); v != neighbours.last(u); ++v) {
      const Half a = arc_of(u, *v);
      MEMPLAN_ASSERT(a >= 2 * items && a < halves() && arc_of(*v, u) == (a ^ 1));
      MEMPLAN_ASSERT(tail_of(a) == u && head_of(a) == *v && extent[a >> 1] == -1);
    }
  }
  for (int c = 0; c < cliques.count(); ++c) {
    for (const auto* u = cliques.first(c); u != cliques.last(c); ++u) {
      MEMPLAN_ASSERT(in_clique(*u, c) && (u == cliques.first(c) || u[-1] < *u));
      for (const auto* v = u + 1; v != cliques.last(c); ++v)
        MEMPLAN_ASSERT(arc_of(*u, *v) != kNoArc);
    }
  }
  MEMPLAN_ASSERT(cliques.values.size() == cliques_of.values.size());
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    const auto cut = static_cast<int>(k);
    const int both = cliques.size(cuts[k].cliques[0]) - cut_sides[0].size(cut);
    MEMPLAN_ASSERT(both > 0 && both == cliques.size(cuts[k].cliques[1]) - cut_sides[1].size(cut));
    MEMPLAN_ASSERT(cuts[k].both > 0);
  }
  for (int i = 0; i < cuts_of.count(); ++i) {
    for (std::int32_t k = cuts_of.begin[i]; k < cuts_of.begin[i + 1]; ++k) {
      MEMPLAN_ASSERT(place_of(i, cuts_of.values[k]) == k);
    }
  }
  for (int i = 0; i < items; ++i) {
    MEMPLAN_ASSERT(body[i] < 0 || row_of[*bodies.first(body[i])] == row_of[i]);
  }
  return true;
}
// Finds what is to be searched: all pieces but those of the foundation. It is laid only where
// offsets are free and there are no groups, so that a row is a piece.
bool Model::find_core(bool lays, const std::vector<Piece>& pieces, std::vector<ItemSet>* live,
                      const Halt& halt) {
  const std::size_t n = rows.size();
  std::vector<Bytes> room;
  for (const Piece& piece : pieces) room.push_back((piece.part->size + unit - 1) / unit);
  std::vector<std::int32_t> row_at(world->size.size(), -1);
  for (std::size_t row = 0; row < n; ++row) row_at[rows[row]] = static_cast<std::int32_t>(row);
  if (lays) {
    std::vector<ItemSet> conflicts = *live;
    for (const auto& [p, q] : world->barred) {
      if (halt.expired()) return false;
      const std::int32_t u = row_at[world->parts[p].item], v = row_at[world->parts[q].item];
      if (u >= 0) conflicts.push_back({std::min(u, v), std::max(u, v)});
    }
    std::optional<Foundation> laid = lay_foundation(conflicts, room, halt);
    if (!laid) return false;
    foundation = std::move(*laid);
  } else {
    foundation.is_laid.assign(n, 0);
    for (const ItemIdx i : rows) foundation.floor.push_back(world->earliest[i]);
  }
  std::vector<std::int32_t> item(pieces.size(), -1), item_of(world->parts.size(), -1);
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const auto& [row, part] = pieces[k];
    if (foundation.is_laid[row] != 0) continue;
    item_of[part - world->parts.data()] = item[k] = items++;
    row_of.push_back(row);
    source.push_back(rows[row]);
    size.push_back(room[k]);
    lead.push_back(part->lead);
    floor.push_back(foundation.floor[row] + part->lead);
  }
  extent = size;
  for (ItemSet& set : *live) {
    std::size_t kept = 0;
    for (const std::int32_t k : set) {
      if (item[k] >= 0) set[kept++] = item[k];
    }
    set.resize(kept);
  }
  for (const auto& [p, q] : world->barred) {
    if (item_of[p] >= 0 && item_of[q] >= 0) listed.emplace_back(item_of[p], item_of[q]);
  }
  return true;
}

// The items of a group come one after the other.
void Model::find_bodies() {
  body.assign(items, -1);
  for (int first = 0; first < items;) {
    int end = first + 1;
    while (end < items && row_of[end] == row_of[first]) ++end;
    if (end - first > 1) {
      for (int i = first; i < end; ++i) {
        body[i] = bodies.count();
        bodies.values.push_back(i);
      }
      bodies.close();
    }
    first = end;
  }
}

bool Model::find_pairs(const std::vector<ItemSet>& live, bool grow, const Halt& halt) {
  const auto n = static_cast<std::size_t>(items);
  ConflictGraph graph{size, std::vector<char>(n * n, 0)};
  for (const ItemSet& set : live) {
    for (auto u = set.begin(); u != set.end(); ++u) {
      for (auto v = u + 1; v != set.end(); ++v) graph.joined[*u * n + *v] = 1;
    }
  }
  for (const auto& [u, v] : listed) graph.joined[std::min(u, v) * n + std::max(u, v)] = 1;
  for (std::size_t u = 0; u < n; ++u) {
    if (halt.look()) return false;
    for (std::size_t v = 0; v < u; ++v) graph.joined[u * n + v] = graph.joined[v * n + u];
  }
  if (listed.empty() && !grow) {
    set_cliques(live);
  } else {
    const std::optional<std::vector<ItemSet>> cliques_found = cover(graph, live, listed, halt);
    if (!cliques_found) return false;
    set_cliques(*cliques_found);
  }

  arc.assign(n * n, kNoArc);
  for (int u = 0; u < items; ++u) {
    if (halt.look()) return false;
    for (int v = 0; v < items; ++v) {
      if (!graph.conflict(u, v)) continue;
      neighbours.values.push_back(v);
      if (v < u) continue;
      arc[u * n + v] = 2 * items + arcs;
      arc[v * n + u] = (2 * items + arcs) ^ 1;
      tail.push_back(u);
      tail.push_back(v);
      extent.push_back(-1);
      arcs += 2;
    }
    neighbours.close();
  }
  return true;
}

void Model::set_cliques(const std::vector<ItemSet>& sets) {
  std::vector<std::vector<std::int32_t>> of(items);
  for (const ItemSet& set : sets) {
    for (const std::int32_t i : set) of[i].push_back(cliques.count());
    cliques.values.insert(cliques.values.end(), set.begin(), set.end());
    cliques.close();
  }
  for (const auto& list : of) {
    cliques_of.values.insert(cliques_of.values.end(), list.begin(), list.end());
    cliques_of.close();
    whole.push_back(!list.empty() &&
                    list.back() - list.front() + 1 == static_cast<std::int32_t>(list.size()));
  }
}

// Makes cuts of cliques that are neighbours in time, since they are in the order of their sections.
// (The rule holds for any two cliques.)
bool Model::find_cuts(const Halt& halt) {
  std::vector<std::vector<std::int32_t>> of(items), beside(items);
  for (int a = 0; a < cliques.count(); ++a) {
    if (halt.look()) return false;
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
        const auto cut_index = static_cast<int>(cuts.size());
        for (const auto* i = cut_sides[side].first(cut_index); i != cut_sides[side].last(cut_index);
             ++i) {
          beside[*i].push_back(cut_index);
        }
      }
      cuts.push_back(cut);
    }
  }
  for (int i = 0; i < items; ++i) {
    cuts_of.values.insert(cuts_of.values.end(), of[i].begin(), of[i].end());
    cuts_of.close();
    cuts_beside.values.insert(cuts_beside.values.end(), beside[i].begin(), beside[i].end());
    cuts_beside.close();
  }
  return true;
}

// Items that can be exchanged without changing the problem. They are live together, so one of
// them is below the other, and it may be the one with the lower index: sorting the places of a
// class of twins by index turns any plan into such a one. Listed conflicts have to be the same,
// too; a member of a group has others on it.
bool Model::find_twins(const Halt& halt) {
  std::vector<ItemSet> others(items);
  for (const auto& [u, v] : listed) {
    others[u].push_back(v);
    others[v].push_back(u);
  }
  for (ItemSet& set : others) std::sort(set.begin(), set.end());
  const auto same = [&](int a, int b) {
    const ItemIdx i = source[a], k = source[b];
    return body[a] < 0 && body[b] < 0 && others[a] == others[b] &&
           world->size[i] == world->size[k] && world->alignment[i] == world->alignment[k] &&
           world->earliest[i] == world->earliest[k] && world->latest[i] == world->latest[k] &&
           std::equal(
               world->begin(i), world->end(i), world->begin(k), world->end(k),
               [](const Span& s, const Span& t) { return s.first == t.first && s.last == t.last; });
  };
  for (int a = 0; a < items; ++a) {
    if (halt.look()) return false;
    for (const auto* b = neighbours.first(a); b != neighbours.last(a); ++b) {
      if (a < *b && same(a, *b)) twins.emplace_back(a, *b);
    }
  }
  return true;
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
  return restricted ? world->legal_below(i, room) + lead[item] : room / unit;
}

Bytes Model::round_restricted(Half h, Bytes value) const {
  const int item = h >> 1;
  const Bytes up = lead[item];
  if ((h & 1) == 0) return world->legal_above(source[item], value - up) + up;
  return -(world->legal_below(source[item], -value - size[item] - up) + up) - size[item];
}

Bytes Model::unround_restricted(Half h, Bytes value) const {
  const int item = h >> 1;
  const Bytes up = lead[item];
  if ((h & 1) == 0) return world->legal_below(source[item], value - 1 - up) + 1 + up;
  const Bytes offset = -value - size[item] - up;
  return -(world->legal_above(source[item], offset + 1) - 1 + up) - size[item];
}

}  // namespace memplan::prover
