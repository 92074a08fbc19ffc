// The network whose minimum cuts are the least that an operator may need while it runs.
//
// Whatever the order, `op` runs after an ideal S which holds all that it waits for, and neither
// itself nor anything that waits for it. The storages that it touches are needed then. What else
// is live is submodular in S, so the least of it is a minimum cut of the network
//
//     source --given--> begin of s --bytes of s--> end of s --wanted--> sink
//
// with arcs that are never cut from each operator to the begin of the storages that it touches,
// from the end of these to the operator, and to the operators that it waits for. The ancestors of
// `op` are the source; `op` and its descendants are the sink; S is on the side of the source.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/order.h"
#include "order/program.h"
#include "util/flow.h"

namespace memplan::order {

// The operators that lie on neither side get nodes of their own, and so do storages that may be
// live or not.
class Network {
 public:
  // `done` has run before `op`, with all that it waits for.
  Network(const Program& program, OperatorIdx op, const std::vector<OperatorIdx>& done = {});

  Flow make_flow() const;

  // By operator: its node, which is the source if it has run, or the sink if it has not.
  std::int32_t node_of(OperatorIdx op) const { return node_of_[op]; }
  bool is_open(OperatorIdx op) const { return node_of_[op] > Flow::kSink; }
  bool is_ancestor(OperatorIdx op) const { return ancestors_[op] == Flow::kSource; }
  // By node: its number in a certificate; see FlowArc.
  std::int64_t name_of(std::int32_t node) const { return names_[node]; }

  // What is live, without the storages of `op`, if all open operators have run, or none.
  Bytes live_after_all() const { return after_all_; }
  Bytes live_before_all() const { return before_all_; }

 private:
  void add_storage(StorageIdx s);

  const Program& program_;
  std::vector<std::int32_t> node_of_;
  std::vector<std::int32_t> ancestors_;  // by operator: the source for those that `op` waits for
  std::vector<std::int64_t> names_;
  std::vector<FlowArc> arcs_;  // with their capacities
  Bytes after_all_ = 0;
  Bytes before_all_ = 0;
};

}  // namespace memplan::order
