// The exact search: all states that are reachable below a limit, which rises from the lower bound
// to the smallest step that was in the way. Nothing is explored twice. A state is a set of
// operators that have run, with all that they wait for (an ideal); what is live depends on the set
// alone.
#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <vector>

#include "model/counter.h"
#include "order/moves.h"
#include "order/outlook.h"
#include "order/tree.h"

namespace memplan::order {

class Exact {
 public:
  Exact(const Program& program, Bytes lower, const Moves& moves, bool looks_ahead);

  enum class End { kFound, kNoneBelow, kSpent };

  // Goes on until an order is found whose peak is limit(), which no order undercuts; or until no
  // order has a peak below `upper`; or until so many states were expanded.
  End run(Bytes upper, std::int64_t states, Counter& counter);

  // Proved: no order has a smaller peak, unless it is at least the `upper` of the last run.
  Bytes limit() const { return limit_; }
  void raise(Bytes lower);
  const std::vector<OperatorIdx>& found() const { return found_; }
  std::size_t bytes() const;  // of memory

 private:
  struct Blocked {
    Bytes step;
    Node node;
    OperatorIdx op;  // -1: the node itself, for what is still to come
    bool operator>(const Blocked& other) const {
      if (step != other.step) return step > other.step;
      return node != other.node ? node < other.node : op > other.op;
    }
  };
  struct Child {
    Bytes live;
    Node node;  // -1: it was seen before
    std::uint64_t hash;
  };
  bool expand(Node node);
  bool try_operator(Node node, OperatorIdx op, std::vector<Child>& children);
  Node find() const;
  Node add(Node parent);
  void forget(const Child& child);
  void push(std::vector<Child>& children);

  Moves moves_;
  Bytes limit_;
  Bytes upper_ = kMaxBytes;
  Tree tree_;
  bool looks_ahead_;
  Outlook outlook_;
  std::vector<Node> stack_;
  std::priority_queue<Blocked, std::vector<Blocked>, std::greater<>> blocked_;
  std::unordered_multimap<std::uint64_t, Node> seen_;
  std::vector<std::uint64_t> bits_;  // of every node, side by side
  std::vector<OperatorIdx> found_;
};

}  // namespace memplan::order
