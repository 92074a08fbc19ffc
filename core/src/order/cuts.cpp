#include "order/cuts.h"

#include <vector>

#include "order/flow.h"
#include "order/matching.h"

namespace memplan::order {

namespace {

constexpr std::int32_t kSource = Flow::kSource;
constexpr std::int32_t kSink = Flow::kSink;
constexpr std::int32_t kNowhere = -1;

void mark(const Lists<OperatorIdx>& next, OperatorIdx op, std::int32_t node,
          std::vector<std::int32_t>& node_of) {
  std::vector<OperatorIdx> todo{op};
  while (!todo.empty()) {
    const OperatorIdx at = todo.back();
    todo.pop_back();
    for (const OperatorIdx other : next[at]) {
      if (node_of[other] == node) continue;
      node_of[other] = node;
      todo.push_back(other);
    }
  }
}

// The operators that lie on neither side get nodes of their own, and so do storages that may be
// live or not.
class Network {
 public:
  // `done` has run before `op`, with all that it waits for.
  Network(const Program& program, OperatorIdx op, const std::vector<OperatorIdx>& done)
      : program_(program), node_of_(program.workspace.size(), kNowhere) {
    mark(program.before, op, kSource, node_of_);
    ancestors_ = node_of_;
    for (const OperatorIdx other : done) node_of_[other] = kSource;
    mark(program.after, op, kSink, node_of_);
    node_of_[op] = kSink;
    names_ = {0, 1};
    for (OperatorIdx u = 0; u < program.operators(); ++u) {
      if (node_of_[u] != kNowhere) continue;
      node_of_[u] = static_cast<std::int32_t>(names_.size());
      names_.push_back(2 + u);
    }
    std::vector<std::uint8_t> own(program.size.size(), 0);
    for (const StorageIdx s : program.touched[op]) own[s] = 1;
    for (StorageIdx s = 0; s < program.storages(); ++s) {
      if (own[s] == 0 && program.size[s] > 0) add_storage(s);
    }
    for (OperatorIdx u = 0; u < program.operators(); ++u) {
      if (node_of_[u] <= kSink) continue;
      for (const OperatorIdx other : program.before[u]) {
        if (node_of_[other] > kSink) arcs_.push_back({node_of_[u], node_of_[other], kMaxBytes});
      }
    }
  }

  LaterCut solve_after(OperatorIdx op) const {
    Flow flow = make_flow();
    LaterCut cut;
    cut.bound = own_bytes(program_, op) + flow.maximize();
    const std::vector<std::uint8_t> is_late = flow.nodes_before_sink();
    for (OperatorIdx u = 0; u < program_.operators(); ++u) {
      if (is_late[node_of_[u]] != 0) cut.late.push_back(u);
    }
    std::vector<std::uint8_t> is_cause(node_of_.size(), 0);
    flow.for_each_arc([&](std::int32_t from, std::int32_t to, Bytes) {
      if (from == kSource && to > kSink) add_cause(to, is_cause, cut.cause);
    });
    return cut;
  }

  Cut solve(OperatorIdx op) const {
    Flow flow = make_flow();
    Cut cut;
    cut.bound = own_bytes(program_, op) + flow.maximize();
    cut.certificate.op = op;
    for (OperatorIdx u = 0; u < program_.operators(); ++u) {
      if (node_of_[u] != kSink && flow.is_reached(node_of_[u])) {
        cut.certificate.done.push_back(u);
      }
    }
    flow.for_each_arc([&](std::int32_t from, std::int32_t to, Bytes amount) {
      cut.certificate.flow.push_back({names_[from], names_[to], amount});
    });
    return cut;
  }

 private:
  Flow make_flow() const {
    Flow flow(names_.size());
    for (const FlowArc& arc : arcs_) {
      flow.add(static_cast<std::int32_t>(arc.from), static_cast<std::int32_t>(arc.to), arc.amount);
    }
    return flow;
  }

  // Adds the operator that makes the storage which begins at a node live, if one must be named.
  void add_cause(std::int32_t node, std::vector<std::uint8_t>& is_cause,
                 std::vector<OperatorIdx>& cause) const {
    const auto s = static_cast<StorageIdx>((names_[node] - 2 - program_.operators()) / 2);
    if (program_.given[s] != 0) return;
    OperatorIdx first = -1;
    for (const OperatorIdx user : program_.users[s]) {
      if (node_of_[user] != kSource) continue;
      if (ancestors_[user] == kSource || is_cause[user] != 0) return;
      if (first < 0) first = user;
    }
    is_cause[first] = 1;
    cause.push_back(first);
  }

  void add_storage(StorageIdx s) {
    bool begins = program_.given[s] != 0;
    bool ends = program_.wanted[s] != 0;
    bool is_open = false;
    for (const OperatorIdx user : program_.users[s]) {
      begins |= node_of_[user] == kSource;
      ends |= node_of_[user] == kSink;
      is_open |= node_of_[user] > kSink;
    }
    // It is over before, or begins later, whatever the order.
    if (!is_open && !(begins && ends)) return;
    const auto begin = static_cast<std::int32_t>(names_.size());
    const std::int32_t end = begin + 1;
    const std::int64_t name = 2 + program_.operators() + 2 * std::int64_t{s};
    names_.insert(names_.end(), {name, name + 1});
    arcs_.push_back({begin, end, program_.size[s]});
    if (begins) arcs_.push_back({kSource, begin, kMaxBytes});
    if (ends) arcs_.push_back({end, kSink, kMaxBytes});
    for (const OperatorIdx user : program_.users[s]) {
      const std::int32_t node = node_of_[user];
      if (node <= kSink) continue;
      if (!begins) arcs_.push_back({node, begin, kMaxBytes});
      if (!ends) arcs_.push_back({end, node, kMaxBytes});
    }
  }

  const Program& program_;
  std::vector<std::int32_t> node_of_;    // by operator
  std::vector<std::int32_t> ancestors_;  // by operator: the source for those that `op` waits for
  std::vector<std::int64_t> names_;      // by node: its number in a certificate
  std::vector<FlowArc> arcs_;            // with their capacities
};

}  // namespace

Bytes own_bytes(const Program& program, OperatorIdx op) {
  Bytes bytes = program.workspace[op];
  for (const StorageIdx s : program.touched[op]) bytes += program.size[s];
  // Every input of a pair that make_program() keeps can be over, in some order.
  return bytes - saved_bytes(program, op, [](StorageIdx) { return true; });
}

Cut least_step(const Program& program, OperatorIdx op) {
  Cut cut = Network(program, op, {}).solve(op);
  cut.bound += program.base;
  return cut;
}

LaterCut least_step_after(const Program& program, OperatorIdx op,
                          const std::vector<OperatorIdx>& done) {
  LaterCut cut = Network(program, op, done).solve_after(op);
  cut.bound += program.base;
  return cut;
}

}  // namespace memplan::order
