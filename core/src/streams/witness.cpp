// Shows why a pair of tensors is safe or not, after the proof of Theorem 1 in SOMAS.
#include <algorithm>
#include <utility>

#include "streams/reach.h"
#include "streams/rules.h"
#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

namespace {

using namespace streams;

class Inquiry {
 public:
  explicit Inquiry(const StreamGraph& graph)
      : graph_(graph), at_(places(graph)), latest_(streams::latest_ancestors(graph, at_)) {}

  Witness ask(TensorIdx a, TensorIdx b) const {
    for (const auto& [first, second] : {std::pair(a, b), std::pair(b, a)}) {
      if (is_over_before(first, graph_.producer[second])) return why_safe(first, second);
    }
    return why_unsafe(a, b);
  }

 private:
  bool before(OperatorIdx n, OperatorIdx m) const {
    return runs_before(graph_, at_, latest_, n, m);
  }

  bool is_over_before(TensorIdx t, OperatorIdx n) const {
    bool over = true;
    for_each_end(graph_, t, [&](OperatorIdx end) { over = over && before(end, n); });
    return over;
  }

  bool ends_where_it_begins(TensorIdx t) const {
    bool alone = true;
    for_each_end(graph_, t, [&](OperatorIdx end) { alone = alone && end == graph_.producer[t]; });
    return alone;
  }

  Witness why_safe(TensorIdx first, TensorIdx second) const {
    Witness why;
    why.safe = true;
    why.first = first;
    std::vector<OperatorIdx> last(at_.streams, kNoOperator);
    for_each_end(graph_, first, [&](OperatorIdx end) {
      OperatorIdx& known = last[graph_.stream[end]];
      known = std::max(known, end);  // in a stream, numbers ascend
    });
    for (const OperatorIdx end : last) {
      if (end != kNoOperator) why.paths.push_back(path(end, graph_.producer[second]));
    }
    return why;
  }

  // Builds the path backwards: along the stream of `n` while that leads to `from`, or else by an
  // arc.
  std::vector<OperatorIdx> path(OperatorIdx from, OperatorIdx n) const {
    std::vector<OperatorIdx> found{n};
    while (n != from) {
      OperatorIdx next = kNoOperator;
      at_.for_each_awaited(n, [&](OperatorIdx m) {
        if (next == kNoOperator && (m == from || before(from, m))) next = m;
      });
      MEMPLAN_ASSERT(next != kNoOperator && next < n && from <= next);
      const bool goes_on = found.size() >= 2 &&
                           graph_.stream[found.back()] == graph_.stream[next] &&
                           graph_.stream[found[found.size() - 2]] == graph_.stream[next];
      if (goes_on) found.pop_back();  // one step along a stream, however many operators it passes
      found.push_back(next);
      n = next;
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  // In this order only the operators that must run before the producers p and q have run when q
  // does. If neither of them waits for the other, either may be the first.
  Witness why_unsafe(TensorIdx a, TensorIdx b) const {
    OperatorIdx p = graph_.producer[a];
    OperatorIdx q = graph_.producer[b];
    const bool ordered = p == q || before(p, q) || before(q, p);
    const bool a_is_brief = ends_where_it_begins(a);
    const bool b_is_brief = ends_where_it_begins(b);
    if (before(q, p) || (!ordered && a_is_brief && !b_is_brief)) std::swap(p, q);
    // While q runs, the tensor of p is still needed. The exception is two tensors that are needed
    // only while they are made: then p and q run at the same time.
    const bool together = !ordered && a_is_brief && b_is_brief;

    Witness why;
    std::vector<OperatorIdx> rest;
    for (OperatorIdx n = 0; n < graph_.operators(); ++n) {
      if (before(n, p) || before(n, q)) {
        why.order.push_back(n);
      } else if (n != p && n != q) {
        rest.push_back(n);
      }
    }
    if (!ordered) why.order.push_back(p);
    why.order.push_back(q);
    MEMPLAN_ASSERT(!before(q, p));
    why.end = static_cast<OperatorIdx>(why.order.size());
    why.begin = why.end - (together ? 2 : 1);
    why.order.insert(why.order.end(), rest.begin(), rest.end());
    MEMPLAN_ASSERT(static_cast<OperatorIdx>(why.order.size()) == graph_.operators());
    return why;
  }

  const StreamGraph& graph_;
  Places at_;
  Table latest_;
};

}  // namespace

UnsafePairs unsafe_pairs(const StreamGraph& graph, SafetyRule rule) {
  require_good(graph);
  switch (rule) {
    case SafetyRule::kAncestorTensors:
      return by_ancestor_tensors(graph);
    case SafetyRule::kAncestorTensorsOpt:
      return by_ancestor_tensors_opt(graph);
    case SafetyRule::kStreamGraph:
      return by_stream_graph(graph);
    case SafetyRule::kRuns:
      break;
  }
  return by_runs(graph);
}

Witness witness(const StreamGraph& graph, TensorIdx a, TensorIdx b) {
  require_good(graph);
  if (a < 0 || b < 0 || a >= graph.tensors() || b >= graph.tensors() || a == b) {
    fail("a witness is for two different tensors of the graph");
  }
  return Inquiry(graph).ask(a, b);
}

}  // namespace memplan
