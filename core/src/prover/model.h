// One temporal component as the prover sees it: items, conflicting pairs, cliques.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "exact/task.h"
#include "memplan/prover.h"
#include "prover/clique_cover.h"
#include "prover/foundation.h"
#include "prover/halt.h"
#include "prover/literal.h"

namespace memplan::prover {

// A list of lists in two flat arrays.
struct Lists {
  std::vector<std::int32_t> begin = {0};
  std::vector<std::int32_t> values;

  void close() { begin.push_back(static_cast<std::int32_t>(values.size())); }
  int count() const { return static_cast<int>(begin.size()) - 1; }
  int size(int i) const { return begin[i + 1] - begin[i]; }
  const std::int32_t* first(int i) const { return values.data() + begin[i]; }
  const std::int32_t* last(int i) const { return values.data() + begin[i + 1]; }
};

// A buffer of some size, as part of a row of the task.
struct Piece {
  std::int32_t row;
  const Part* part;
};

// Cliques that are further apart share less. With 1 instead of 2, proofs take twice as many
// conflicts; with 3, each conflict costs more than there are fewer.
constexpr int kMaxCutDistance = 2;

// Two cliques that share items (cuts.h).
struct Cut {
  std::int32_t cliques[2];
  Bytes both;  // the total size of the items in both
};

struct Model {
  // `exact_bytes`: never in units that only hold after rounding sizes up, for a proof that
  // speaks of true sizes.
  Model(const exact::Task& task, const ProverOptions& options, bool exact_bytes,
        const Halt& halt = {});

  static bool suits(const exact::Task& task);

  bool halted = false;  // `halt` ended it: half of a model is of no use
  int items = 0;        // that are to be searched; the foundation is not
  int arcs = 0;         // two per pair
  bool restricted = false;
  Bytes unit = 1;
  const Items* world = nullptr;
  std::vector<ItemIdx> rows;  // of the task, by its ids
  Foundation foundation;      // by id

  std::vector<std::int32_t> row_of;  // by item: its id
  std::vector<ItemIdx> source;       // by item: that of the world
  std::vector<Bytes> floor;          // by item
  std::vector<Bytes> size;           // by item
  std::vector<Bytes> lead;           // by item: from the offset of its row up to its own
  std::vector<std::int32_t> body;    // by item: the group that it is of, or -1
  Lists bodies;                      // groups that move as one: their items
  std::vector<Bytes> extent;         // by variable: x >= v is false iff y >= 1 - v - extent is true
  std::vector<std::pair<int, int>> listed;  // conflicts whatever the time
  Lists neighbours;                         // by item: those it conflicts with
  std::vector<Half> arc;                    // items x items: the half "row below column", or kNoArc
  std::vector<std::int32_t> tail;           // by arc - 2 * items
  Lists cliques;                            // items that all conflict; none within another
  std::vector<char> whole;                  // by item
  Lists cliques_of;                         // by item
  std::vector<Cut> cuts;
  Lists cut_sides[2];  // by cut: what is in its first clique only, in its second only
  Lists cuts_of;       // by item: those with the item in both cliques
  Lists cuts_beside;   // by item: those with the item in one clique only
  std::vector<std::pair<int, int>> twins;  // the first may be taken to lie below the second
  std::pair<int, int> upright = {-1, -1};  // and this one too, if plans may be turned upside down

  static constexpr Half kNoArc = -1;

  int halves() const { return 2 * items + arcs; }
  bool is_item(Half h) const { return h < 2 * items; }
  Half arc_of(int u, int v) const { return arc[static_cast<std::size_t>(u) * items + v]; }
  int tail_of(Half a) const { return tail[a - 2 * items]; }
  int head_of(Half a) const { return tail_of(a ^ 1); }
  // Whether the cliques of an item are consecutive: always, unless it has gaps or listed conflicts.
  bool is_whole(int item) const { return whole[item] != 0; }
  // Which cliques of an item another one is in, too, as a range of its list; both are whole. Empty
  // for a listed pair that is in none.
  std::pair<int, int> shared(int item, int other) const {
    const std::int32_t base = *cliques_of.first(item);
    const std::int32_t first = *cliques_of.first(other), last = *(cliques_of.last(other) - 1);
    const int begin = std::max(first - base, 0);
    return {begin, std::max(begin, std::min(last - base + 1, cliques_of.size(item)))};
  }
  bool in_clique(int item, std::int32_t clique) const {
    return std::binary_search(cliques_of.first(item), cliques_of.last(item), clique);
  }
  bool is_cut_by(int item, std::int32_t cut) const {
    return in_clique(item, cuts[cut].cliques[0]) && in_clique(item, cuts[cut].cliques[1]);
  }
  // The index of a cut in `cuts_of` among those of an item, or -1 where it is not in both cliques.
  std::int32_t place_of(int item, std::int32_t cut) const {
    if (is_whole(item)) {
      const std::int32_t* const of = cliques_of.first(item);
      const std::int32_t a = cuts[cut].cliques[0], b = cuts[cut].cliques[1];
      if (a < *of || b >= *of + cliques_of.size(item)) return -1;
      // All cuts between its cliques are there, in this order.
      static_assert(kMaxCutDistance == 2);
      return cuts_of.begin[item] + 2 * (a - *of) + (b - a - 1);
    }
    const std::int32_t* const at = std::lower_bound(cuts_of.first(item), cuts_of.last(item), cut);
    if (at == cuts_of.last(item) || *at != cut) return -1;
    return static_cast<std::int32_t>(at - cuts_of.values.data());
  }
  // How far y is above x in the direction, where x and y are of one body.
  Bytes shift(int x, int y, int direction) const {
    const Bytes up = lead[y] - lead[x];
    return direction == 0 ? up : size[x] - size[y] - up;
  }
  Literal negation(Literal l) const { return {l.half ^ 1, 1 - l.value - extent[l.half >> 1]}; }

  // The ids of the foundation below an item, from the bottom up.
  std::vector<std::int32_t> laid_below(int item) const;
  // The greatest offset of an item that ends at or below `limit` bytes, or less than any offset.
  Bytes latest(int item, Bytes limit) const;

  // Pairs and arcs name each other, cliques are cliques, lists and their inverses agree.
  bool check_invariants() const;

  // The least legal value of an item's half at or above `value` ...
  Bytes round(Half h, Bytes value) const { return restricted ? round_restricted(h, value) : value; }
  // ... and the least value that is rounded to `value` or above.
  Bytes unround(Half h, Bytes value) const {
    return restricted ? unround_restricted(h, value) : value;
  }

 private:
  // These return false if `halt` ends them.
  bool find_core(bool lays, const std::vector<Piece>& pieces, std::vector<ItemSet>* live,
                 const Halt& halt);
  bool find_pairs(const std::vector<ItemSet>& live, bool grow, const Halt& halt);
  bool find_cuts(const Halt& halt);
  bool find_twins(const Halt& halt);
  void find_bodies();
  void set_cliques(const std::vector<ItemSet>& sets);
  void find_upright();
  Bytes round_restricted(Half h, Bytes value) const;
  Bytes unround_restricted(Half h, Bytes value) const;
};

}  // namespace memplan::prover
