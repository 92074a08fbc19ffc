// First fit for few buffers. One list of all that is placed, sorted by address, is read from the
// bottom up; for some hundred buffers this takes less time than the trees of model/occupancy.h.
#pragma once

#include <vector>

#include "greedy/passes.h"
#include "memplan/budget.h"
#include "memplan/problem.h"
#include "memplan/sections.h"

namespace memplan {

class ShortList {
 public:
  // Whether it can serve the problem, and is fast: few buffers, each with one span at most, and no
  // conflicts beyond lifetimes and no groups.
  static bool suits(const Problem& problem, const Sections& sections);

  // All must outlive it.
  ShortList(const Problem& problem, const Sections& sections, Stopper& stopper);

  // The draft of Passes::in_order with first fit; a step is a placement.
  Draft in_order(const std::vector<BufferIdx>& order, const Limits& limits);

 private:
  struct Held {
    Bytes lower;
    Bytes upper;
    SectionIdx first;  // inclusive
    SectionIdx last;
  };

  Held shape(BufferIdx b) const;
  Bytes lowest_place(const Held& shape, Bytes alignment, Bytes top) const;
  void put(BufferIdx b, Held shape, Bytes offset, Draft* draft);
  bool in_budget(const Limits& limits, const Draft& draft);
  bool check_invariants() const;

  const Problem& problem_;
  const Sections& sections_;
  Stopper& stopper_;
  std::vector<Held> held_;  // by `lower`
};

}  // namespace memplan
