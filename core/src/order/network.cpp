#include "order/network.h"

namespace memplan::order {

namespace {

constexpr std::int32_t kSource = Flow::kSource;
constexpr std::int32_t kSink = Flow::kSink;
constexpr std::int32_t kNowhere = -1;

}  // namespace

Network::Network(const Program& program, OperatorIdx op, const std::vector<OperatorIdx>& done)
    : program_(program), node_of_(program.workspace.size(), kNowhere) {
  mark_reached(program.before, op, kSource, node_of_);
  ancestors_ = node_of_;
  for (const OperatorIdx other : done) node_of_[other] = kSource;
  mark_reached(program.after, op, kSink, node_of_);
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
    if (!is_open(u)) continue;
    for (const OperatorIdx other : program.before[u]) {
      if (is_open(other)) arcs_.push_back({node_of_[u], node_of_[other], kMaxBytes});
    }
  }
}

Flow Network::make_flow() const {
  Flow flow(names_.size());
  for (const FlowArc& arc : arcs_) {
    flow.add(static_cast<std::int32_t>(arc.from), static_cast<std::int32_t>(arc.to), arc.amount);
  }
  return flow;
}

void Network::add_storage(StorageIdx s) {
  bool begins = program_.given[s] != 0;
  bool ends = program_.wanted[s] != 0;
  bool may_vary = false;
  for (const OperatorIdx user : program_.users[s]) {
    begins |= node_of_[user] == kSource;
    ends |= node_of_[user] == kSink;
    may_vary |= is_open(user);
  }
  // It is over before, or begins later, whatever the order.
  if (!may_vary && !(begins && ends)) return;
  if (ends) after_all_ += program_.size[s];
  if (begins) before_all_ += program_.size[s];
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

}  // namespace memplan::order
