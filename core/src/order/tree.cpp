#include "order/tree.h"

namespace memplan::order {

Node Tree::add(Node parent) {
  const std::vector<OperatorIdx>& done = state_.done();
  nodes_.push_back({parent, done.size(), ops_.size()});
  ops_.insert(ops_.end(), done.begin() + static_cast<std::ptrdiff_t>(nodes_[parent].count),
              done.end());
  return static_cast<Node>(nodes_.size()) - 1;
}

void Tree::go(Node node) {
  // A parent has a lower number than its children.
  std::vector<Node> path;
  Node other = at_;
  for (Node at = node; at != other;) {
    if (at > other) {
      path.push_back(at);
      at = nodes_[at].parent;
    } else {
      other = nodes_[other].parent;
    }
  }
  state_.rewind(nodes_[other].count);
  for (std::size_t i = path.size(); i-- > 0;) {
    const Entry& entry = nodes_[path[i]];
    const std::size_t count = entry.count - nodes_[entry.parent].count;
    for (std::size_t k = 0; k < count; ++k) state_.run(ops_[entry.first + k]);
  }
  at_ = node;
}

}  // namespace memplan::order
