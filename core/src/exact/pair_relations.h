// The relations of buffers with several spans: the allowed differences of their offsets.
//
//   i:  ##    ####      j:  xx       A span of j collides with a span of i in one open interval of
//       ####  ##            xxxx     off_j - off_i. What is left between such intervals is allowed:
//       ---time--->         -time->
//                                    <--------]     [---]     [----------->   off_j - off_i
//                                     j below   j in a      j above
//                                               nook of i
//
// A listed conflict forbids one interval more, as if both were held whole at some time; the members
// of a group are spans of one item.
#pragma once

#include <vector>

#include "memplan/budget.h"
#include "model/items.h"

namespace memplan {

// The ranges are closed at both ends. The first range of a pair begins at -kMaxBytes and the last
// one ends at kMaxBytes: no difference of offsets is further out.
struct Differences {
  Bytes from;
  Bytes to;
};

struct Relation {
  ItemIdx i;
  ItemIdx j;
  std::int32_t begin;  // allowed[begin .. end), ascending and disjoint; two or more
  std::int32_t end;
};

struct Relations {
  std::vector<Relation> all;  // one for every pair that conflicts
  std::vector<Differences> allowed;
  std::vector<std::vector<std::int32_t>> of_item;

  // Returns null, or a clause on why they could not be listed.
  const char* build(const Items& items, Stopper& stopper);

  // The greatest k of begin <= k < end with allowed[k].from <= difference. It is allowed if it is
  // also at or below allowed[k].to.
  std::int32_t range_at(const Relation& relation, Bytes difference) const {
    std::int32_t k = relation.begin;
    while (k + 1 < relation.end && allowed[k + 1].from <= difference) ++k;
    return k;
  }

  // Items that are linked by no chain of relations are independent.
  std::vector<std::vector<ItemIdx>> parts() const;

  // The ranges of a pair are disjoint and ascend from the least possible difference to the
  // greatest; both items of a pair list it.
  bool check_invariants() const;
};

}  // namespace memplan
