#include "order/cuts.h"

#include <vector>

#include "order/matching.h"
#include "order/network.h"

namespace memplan::order {

namespace {

// Adds the operator that makes the storage which begins at a node live, if one must be named.
void add_cause(const Program& program, const Network& network, std::int32_t node,
               std::vector<std::uint8_t>& is_cause, std::vector<OperatorIdx>& cause) {
  const auto s = static_cast<StorageIdx>((network.name_of(node) - 2 - program.operators()) / 2);
  if (program.given[s] != 0) return;
  OperatorIdx first = -1;
  for (const OperatorIdx user : program.users[s]) {
    if (network.node_of(user) != Flow::kSource) continue;
    if (network.is_ancestor(user) || is_cause[user] != 0) return;
    if (first < 0) first = user;
  }
  is_cause[first] = 1;
  cause.push_back(first);
}

}  // namespace

Bytes own_bytes(const Program& program, OperatorIdx op) {
  Bytes bytes = program.workspace[op];
  for (const StorageIdx s : program.touched[op]) bytes += program.size[s];
  // Every input of a pair that make_program() keeps can be over, in some order.
  return bytes - saved_bytes(program, op, [](StorageIdx) { return true; });
}

Cut least_step(const Program& program, OperatorIdx op) {
  const Network network(program, op);
  Flow flow = network.make_flow();
  Cut cut;
  cut.bound = program.base + own_bytes(program, op) + flow.maximize();
  cut.certificate.op = op;
  for (OperatorIdx u = 0; u < program.operators(); ++u) {
    const std::int32_t node = network.node_of(u);
    if (node != Flow::kSink && flow.is_reached(node)) cut.certificate.done.push_back(u);
  }
  flow.for_each_arc([&](std::int32_t from, std::int32_t to, Bytes amount) {
    cut.certificate.flow.push_back({network.name_of(from), network.name_of(to), amount});
  });
  return cut;
}

LaterCut least_step_after(const Program& program, OperatorIdx op,
                          const std::vector<OperatorIdx>& done) {
  const Network network(program, op, done);
  Flow flow = network.make_flow();
  LaterCut cut;
  cut.bound = program.base + own_bytes(program, op) + flow.maximize();
  const std::vector<std::uint8_t> is_late = flow.nodes_before_sink();
  for (OperatorIdx u = 0; u < program.operators(); ++u) {
    if (is_late[network.node_of(u)] != 0) cut.late.push_back(u);
  }
  std::vector<std::uint8_t> is_cause(program.workspace.size(), 0);
  flow.for_each_arc([&](std::int32_t from, std::int32_t to, Bytes) {
    if (from == Flow::kSource && to > Flow::kSink) {
      add_cause(program, network, to, is_cause, cut.cause);
    }
  });
  return cut;
}

}  // namespace memplan::order
