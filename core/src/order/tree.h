// States that a search has met, as a tree: each is its parent and the operators that ran since.
#pragma once

#include <cstdint>
#include <vector>

#include "order/state.h"

namespace memplan::order {

using Node = std::int32_t;

class Tree {
 public:
  explicit Tree(const Program& program) : state_(program), nodes_(1) {}

  State& state() { return state_; }
  const State& state() const { return state_; }

  // Adds the present state as a child of a node, from which `state` has gone on.
  Node add(Node parent);
  // Goes to a node, by what it has in common with the present one.
  void go(Node node);
  // Goes back to the node that go() went to, after moves beyond it.
  void back() { state_.rewind(nodes_[at_].count); }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Entry {
    Node parent = -1;
    std::size_t count = 0;  // operators that have run
    std::size_t first = 0;  // in ops_: those that ran since the parent
  };

  State state_;
  Node at_ = 0;
  std::vector<Entry> nodes_;
  std::vector<OperatorIdx> ops_;
};

}  // namespace memplan::order
