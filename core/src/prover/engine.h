// The proving engine (docs/algorithms/prover.md): does a component fit below a limit?
//
// Lazy clause generation. Decide for pairs of items which one is below; propagate bounds; learn a
// clause from every conflict. When all pairs are decided, the least offsets are a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exact/any_search.h"
#include "exact/task.h"
#include "memplan/prover.h"
#include "prover/analysis.h"
#include "prover/clauses.h"
#include "prover/explainer.h"
#include "prover/halt.h"
#include "prover/model.h"
#include "prover/order.h"
#include "prover/proof_log.h"
#include "prover/propagation.h"
#include "prover/trail.h"

namespace memplan::prover {

class Engine {
 public:
  // `task`: one temporal component, whose world must outlive the engine; no windows. `log` may be
  // null. After `run` has returned kUnsat it has the whole refutation; a log turns learning on.
  Engine(const exact::Task& task, const ProverOptions& options, std::uint64_t seed, ProofLog* log);
  // The same, or null if `halt` ends it, before the log has anything.
  static std::unique_ptr<Engine> make(const exact::Task& task, const ProverOptions& options,
                                      std::uint64_t seed, ProofLog* log, const Halt& halt);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether the task has no windows, and not too many pairs for the tables of this engine.
  static bool suits(const exact::Task& task) { return Model::suits(task); }

  // Is there a plan in which all items end at or below `limit` bytes? It resumes where the last
  // call stopped; the limit must not be above that of the last call. Ends with kBudget after that
  // many more conflicts or steps (units of work, some nanoseconds each, the same on any machine),
  // or when `halt` stops it.
  exact::Verdict run(Bytes limit, std::int64_t conflicts, std::int64_t steps,
                     const Halt& halt = {});

  // After kSat: bytes, by id of the task.
  const std::vector<Bytes>& offsets() const { return offsets_; }
  // After kUnsat: items of the world that do not fit together.
  const std::vector<ItemIdx>& conflict() const { return model_.rows; }
  // Makes the search try the order of this plan first for each pair; bytes, by id.
  void suggest(const std::vector<Bytes>& offsets);

  std::int64_t conflicts() const { return conflicts_; }
  std::int64_t steps() const {
    return steps_ + propagator_.steps() + clauses_.steps() + analysis_.steps();
  }

  // Checks the trail and the clauses, and that every open pair waits to be decided.
  bool check_invariants() const;

 private:
  Engine(Model model, const ProverOptions& options, ProofLog* log, const Halt& halt);
  void begin(std::uint64_t seed);
  bool lower(Bytes limit);
  bool propagate(Conflict* conflict, std::int64_t most, const Halt& halt);
  bool resolve(const Conflict& conflict);
  bool backtrack_once();
  void backtrack(int level);
  bool decide();
  void restart();
  void take_plan();
  bool is_plan() const;

  const ProverOptions options_;
  const Model model_;
  ProofLog* log_;
  Trail trail_;
  Clauses clauses_;
  Propagator propagator_;
  Order order_;
  Analysis analysis_;

  std::vector<char> phase_;  // by pair: 1 if its even arc is to be decided first
  std::vector<Bytes> offsets_;
  Bytes limit_;
  bool refuted_ = false;
  std::int32_t logged_ = 0;  // entries of level 0 that the proof has
  std::int64_t conflicts_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t restarts_ = 0;
  std::int64_t next_restart_ = 0;
  std::int64_t next_reduction_ = 0;
};

}  // namespace memplan::prover
