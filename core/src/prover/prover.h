// The proving engine on a whole problem: an engine for each component (docs/algorithms/prover.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "exact/task.h"
#include "memplan/budget.h"
#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/prover.h"
#include "memplan/sections.h"
#include "model/items.h"
#include "prover/engine.h"
#include "prover/halt.h"

namespace memplan::prover {

// The budget of a call, which leaves in it what is not spent.
struct Slice {
  std::int64_t conflicts = 0;
  std::int64_t steps = 0;  // of work: the clock of the engine
};

class Prover {
 public:
  // It handles neither windows of gaps nor problems with too many pairs.
  static bool suits(const Problem& problem, const Sections& sections);

  // `limit` is the greatest limit of all calls of run(). All must outlive it; `log` may be null.
  Prover(const Problem& problem, const Sections& sections, Bytes limit,
         const ProverOptions& options, std::uint64_t seed, ProofLog* log = nullptr);
  ~Prover();

  // Sets a plan to begin from: one offset per buffer.
  void suggest(const std::vector<Bytes>& offsets);

  // Is there a plan with a peak of at most `limit`? No limit may be above the one before. The
  // answer is like that of exact_fit(); a conflict is a node. Where the slice ended, a later call
  // resumes. `stopper` may be null: then only `cancel` is watched, which may be null, too.
  Plan run(Bytes limit, Slice* slice, Stopper* stopper, const std::atomic<bool>* cancel);

 private:
  struct Component;

  Bytes height(const Component& component) const;
  bool make_engine(Component* component, const Halt& halt);
  Plan infeasible(const std::vector<ItemIdx>& conflict) const;

  const Problem& problem_;
  const ProverOptions& options_;
  std::uint64_t seed_;
  ProofLog* log_;
  Items items_;
  std::vector<std::unique_ptr<Component>> components_;
  std::vector<Bytes> offsets_;  // by item, kNoOffset before the first plan
};

}  // namespace memplan::prover
