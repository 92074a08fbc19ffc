// Operators that an order can have later at no cost, so that searches need not try them first.
//
// An operator that always leaves at least as much behind as it can end (`may_end`) makes no other
// step larger by running later. How late depends on what its own step may then need: what is
// live after it, and at most `may_end` and its workspace more.
//
//  * If every operator that waits for it adds at least so much itself, it is lazy: it runs directly
//    before the first of these.
//  * If none waits for it, it is late: it runs directly after any operator that is not lazy and
//    surely needs so much more than it leaves. Of two that could follow each other, the number
//    decides.
//
// All of this holds in every state, so operators may be moved one after the other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "order/program.h"
#include "order/state.h"

namespace memplan::order {

class Delays {
 public:
  explicit Delays(const Program& program);

  // The operators that are to be tried next, ascending: those that are ready, or wait only for lazy
  // ones. There is one as long as the program is not over.
  std::vector<OperatorIdx> choices(const State& state) const;

  // What has to run before a choice, in a legal order: lazy operators alone.
  std::vector<OperatorIdx> needs(const State& state, OperatorIdx choice) const;

 private:
  std::vector<std::pair<Bytes, OperatorIdx>> largest_needs(const State& state) const;

  const Program& program_;
  std::vector<std::uint8_t> lazy_;    // by operator
  std::vector<std::uint8_t> leaf_;    // by operator: whether it may be late
  std::vector<Bytes> may_need_;       // by operator: what its step may be above what it leaves
  std::vector<Bytes> surely_needs_;   // by operator: what its step is above that in every state
  std::vector<OperatorIdx> by_need_;  // those that are not lazy, from the largest need on
  mutable std::vector<std::int32_t> place_;  // by operator: among the lazy ones of choices(), or -1
};

}  // namespace memplan::order
