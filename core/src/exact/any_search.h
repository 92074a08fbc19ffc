// What a worker needs from a search, whatever its kind and the width of its numbers.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "exact/rules.h"
#include "memplan/budget.h"
#include "memplan/types.h"

namespace memplan::exact {

enum class Verdict {
  kSat,     // offsets() holds a plan
  kUnsat,   // in_conflict() holds a reason
  kBudget,  // nodes, time or memory ran out
};

class AnySearch {
 public:
  virtual ~AnySearch() = default;
  // Each run keeps what the runs before it have learned. `stopper` may be null: then only `cancel`
  // is watched.
  virtual Verdict run(const Strategy& strategy, std::int64_t budget, Stopper* stopper,
                      const std::atomic<bool>* cancel) = 0;
  virtual std::int64_t nodes() const = 0;                 // of all runs
  virtual const std::vector<Bytes>& offsets() const = 0;  // by id, in units
  virtual bool in_conflict(int id) const = 0;
  virtual bool exhausted() const { return false; }  // more nodes would not help
};

}  // namespace memplan::exact
