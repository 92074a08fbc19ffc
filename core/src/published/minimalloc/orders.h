// The static orders of MiniMalloc's search.
#pragma once

#include <string>
#include <vector>

#include "memplan/problem.h"
#include "published/minimalloc/rules.h"

namespace memplan {

// A word of keys (minimalloc.h). Items are sorted by them, all descending, ties by row.
class StaticOrder {
 public:
  // Throws std::invalid_argument for a letter that is no key.
  StaticOrder(const Problem& problem, const Items& items, const Overlaps& overlaps,
              const std::string& word);

  // T is the most of `unallocated`, bytes by section, where the item lives: it is taken anew in
  // each call, and so belongs to the moment. All other keys are the items' own.
  void sort(std::vector<ItemIdx>::iterator begin, std::vector<ItemIdx>::iterator end,
            const std::vector<Bytes>& unallocated);

 private:
  const Items& items_;
  std::string word_;
  std::vector<double> keys_;  // a row of as many as the word has letters, by item
};

}  // namespace memplan
