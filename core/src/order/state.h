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

  // What is needed while `op` runs, and by how much less is live after it than before.
  Bytes step(OperatorIdx op) const;
  Bytes delta(OperatorIdx op) const;

  void run(OperatorIdx op);
  void rewind(std::size_t count);  // until only so many have run

  const std::vector<OperatorIdx>& ready() const { return ready_; }
  const std::vector<OperatorIdx>& done() const { return done_; }  // in the order they ran
  const Bits& bits() const { return bits_; }
  std::uint64_t hash() const { return hash_; }  // of the set of operators that ran
  Bytes live() const { return live_; }
  std::size_t count() const { return done_.size(); }
  bool is_over() const { return done_.size() == program_.workspace.size(); }
  bool has_run(OperatorIdx op) const { return ((bits_[op >> 6] >> (op & 63)) & 1) != 0; }
  bool is_ready(OperatorIdx op) const { return place_[op] >= 0; }
  const Program& program() const { return program_; }

 private:
  void undo();

  // Whether `op`, which is to run, is the last operator that needs a storage in the order of time.
  bool dies_at(StorageIdx storage) const;
  void add_ready(OperatorIdx op);
  void drop_ready(OperatorIdx op);

  const Program& program_;
  std::vector<std::int32_t> used_;     // by storage: operators that ran and touch it
  std::vector<std::int32_t> waiting_;  // by operator: how many it waits for
  std::vector<OperatorIdx> ready_;
  std::vector<std::int32_t> place_;  // by operator: where it is in ready_, or -1
  std::vector<OperatorIdx> done_;
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
