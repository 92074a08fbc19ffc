#include "order/exact.h"

#include <algorithm>
#include <utility>

namespace memplan::order {

Exact::Exact(const Program& program, Bytes lower, const Moves& moves, bool looks_ahead)
    : moves_(moves),
      limit_(std::max(lower, live_before(program))),
      tree_(program),
      looks_ahead_(looks_ahead),
      outlook_(program) {
  bits_ = tree_.state().bits();
  State& state = tree_.state();
  moves_.commit(state, limit_, 0);
  const Node root = add(0);
  if (state.is_over()) found_ = state.done();
  tree_.back();
  stack_.push_back(root);
}

void Exact::raise(Bytes lower) { limit_ = std::max(limit_, lower); }

std::size_t Exact::bytes() const {
  return bits_.size() * sizeof(std::uint64_t) + tree_.size() * 192 +
         blocked_.size() * sizeof(Blocked);
}

// Depth first, with the state with the least live on top.
//
// Each order below `upper` goes on from a state on the stack, or its first step above the limit is
// in blocked_; the rules of moves.h keep one such order if there is any. So when the stack is
// empty, the smallest blocked step is a bound on all orders. It becomes the limit, and what it
// blocked goes on. If that step is at least `upper`, the best known order is optimal. An
// interrupted search has proved its present limit.
Exact::End Exact::run(Bytes upper, std::int64_t states, Counter& counter) {
  upper_ = upper;
  for (std::int64_t used = 0; found_.empty();) {
    if (limit_ >= upper_) return End::kNoneBelow;
    if (stack_.empty()) {
      if (blocked_.empty() || blocked_.top().step >= upper_) {
        limit_ = upper_;
        return End::kNoneBelow;
      }
      limit_ = std::max(limit_, blocked_.top().step);
      std::vector<Child> children;
      while (!blocked_.empty() && blocked_.top().step <= limit_) {
        const Blocked next = blocked_.top();
        blocked_.pop();
        if (next.op < 0) {
          stack_.push_back(next.node);
          continue;
        }
        tree_.go(next.node);
        try_operator(next.node, next.op, children);
        if (!found_.empty()) return End::kFound;
        if (counter.take()) {
          push(children);
          return End::kSpent;
        }
      }
      push(children);
      continue;
    }
    if (used++ >= states || counter.take()) return End::kSpent;
    const Node node = stack_.back();
    stack_.pop_back();
    if (expand(node)) return End::kFound;
  }
  return limit_ < upper_ ? End::kFound : End::kNoneBelow;
}

// Makes the children of a state. A step above the limit is kept in blocked_, for a higher limit. A
// child that is a valley stands for all orders from here: then it is the only one, and the children
// and blocked steps that came before it are dropped.
bool Exact::expand(Node node) {
  tree_.go(node);
  State& state = tree_.state();
  std::vector<Child> children;
  std::vector<Blocked> blocked;
  for (const OperatorIdx op : moves_.choices(state)) {
    moves_.prepare(state, op);
    const Bytes step = state.step(op);
    tree_.back();
    if (step > limit_) {
      outlook_.refuse(op);
      if (step < upper_) blocked.push_back({step, node, op});
    } else if (try_operator(node, op, children)) {
      // From a valley every order within the limit can go on, so the others are not needed.
      if (!found_.empty()) return true;
      const Child valley = children.back();
      children.pop_back();
      for (const Child& child : children) forget(child);
      children.assign(1, valley);
      blocked.clear();
      break;
    }
  }
  for (const Blocked& each : blocked) blocked_.push(each);
  push(children);
  return false;
}

// Puts the child with the least live on top.
void Exact::push(std::vector<Child>& children) {
  std::sort(children.begin(), children.end(), [](const Child& a, const Child& b) {
    return a.live != b.live ? a.live > b.live : a.node < b.node;
  });
  for (const Child& child : children) {
    if (child.node >= 0) stack_.push_back(child.node);
  }
}

// Takes an operator from a node; adds the child if it is new. Returns whether nothing else has to
// be tried: the order is complete, or the child is a valley.
bool Exact::try_operator(Node node, OperatorIdx op, std::vector<Child>& children) {
  State& state = tree_.state();
  const bool is_valley = moves_.take(state, op, limit_);
  if (state.is_over()) {
    found_ = state.done();
    return true;
  }
  Node child = find() >= 0 ? -1 : add(node);
  const Bytes excess = looks_ahead_ && child >= 0 ? outlook_.excess(state, limit_) : 0;
  if (excess > limit_) {
    if (excess < upper_) blocked_.push({excess, child, -1});
    child = -1;
  }
  if (child >= 0 || is_valley) children.push_back({state.live(), child, state.hash()});
  tree_.back();
  return is_valley;
}

// The node in which the same operators ran, or -1.
Node Exact::find() const {
  const Bits& bits = tree_.state().bits();
  const auto [first, last] = seen_.equal_range(tree_.state().hash());
  for (auto each = first; each != last; ++each) {
    const auto at = bits_.begin() + static_cast<std::ptrdiff_t>(each->second * bits.size());
    if (std::equal(bits.begin(), bits.end(), at)) return each->second;
  }
  return -1;
}

Node Exact::add(Node parent) {
  const State& state = tree_.state();
  const Node node = tree_.add(parent);
  seen_.emplace(state.hash(), node);
  bits_.insert(bits_.end(), state.bits().begin(), state.bits().end());
  return node;
}

// Another way may lead to the state of a child that is left out.
void Exact::forget(const Child& child) {
  const auto [first, last] = seen_.equal_range(child.hash);
  for (auto each = first; each != last; ++each) {
    if (each->second != child.node) continue;
    seen_.erase(each);
    return;
  }
}

}  // namespace memplan::order
