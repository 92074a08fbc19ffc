// The state of a program after some operators have run, which can be done and undone.
#pragma once

#include <cstdint>
#include <vector>

#include "order/program.h"
#include "util/invariants.h"

namespace memplan::order {

using Bits = std::vector<std::uint64_t>;

class State {
 public:
  explicit State(const Program& program);

  // What is needed while `op` runs, and how much more is live after it than before.
  Bytes step(OperatorIdx op) const;
  Bytes delta(OperatorIdx op) const { return delta_[op]; }

  void run(OperatorIdx op);
  void rewind(std::size_t count);  // until only so many have run

  const std::vector<OperatorIdx>& ready() const { return ready_.members; }
  // Those of ready() after which no more is live.
  const std::vector<OperatorIdx>& falling() const { return falling_.members; }
  const std::vector<OperatorIdx>& done() const { return done_; }  // in the order they ran
  const Bits& bits() const { return bits_; }
  std::uint64_t hash() const { return hash_; }  // of the set of operators that ran
  Bytes live() const { return live_; }
  std::size_t count() const { return done_.size(); }
  bool is_over() const { return done_.size() == program_.workspace.size(); }
  bool has_run(OperatorIdx op) const { return ((bits_[op >> 6] >> (op & 63)) & 1) != 0; }
  std::int32_t used(StorageIdx storage) const { return used_[storage]; }
  bool is_ready(OperatorIdx op) const { return ready_.place[op] >= 0; }
  // Whether `op`, which is ready, could not run yet when only the first `mark` had run.
  bool became_ready(OperatorIdx op, std::size_t mark) const;
  const Program& program() const { return program_; }

 private:
  // A set of operators; members come in any order.
  struct Set {
    std::vector<OperatorIdx> members;
    std::vector<std::int32_t> place;  // by operator: where it is in members, or -1

    void add(OperatorIdx op);
    void drop(OperatorIdx op);
  };

  void undo();

  // Whether `op`, which is to run, is the last operator that needs a storage in the order of time.
  bool dies_at(StorageIdx storage) const;
  void add_ready(OperatorIdx op);
  void drop_ready(OperatorIdx op);
  bool is_for_one(std::int32_t used, StorageIdx storage) const;
  void change_delta(OperatorIdx op, Bytes change);
  void change_births(StorageIdx storage, Bytes change);

  const Program& program_;
  std::vector<std::int32_t> used_;     // by storage: operators that ran and touch it
  std::vector<std::int32_t> waiting_;  // by operator: how many it waits for
  std::vector<OperatorIdx> left_;      // by storage: its users that have not run, all xored
  std::vector<Bytes> delta_;           // by operator that has not run
  std::vector<Bytes> born_;            // likewise: what it makes first, and its workspace
  Set ready_;
  Set falling_;
  std::vector<OperatorIdx> done_;
  std::vector<std::size_t> ran_at_;  // by operator that has run: its place in done_
  Bits bits_;
  std::uint64_t hash_ = 0;
  Bytes live_ = 0;
};

// What is live before the first operator, and after the last one.
Bytes live_before(const Program& program);
Bytes live_after(const Program& program);

// The steps of a legal order, by place.
std::vector<Bytes> steps_of(const Program& program, const std::vector<OperatorIdx>& order);

}  // namespace memplan::order
