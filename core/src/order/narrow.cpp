#include "order/narrow.h"

#include <algorithm>

#include "order/cuts.h"
#include "order/network.h"

namespace memplan::order {

Narrowing::Narrowing(const Program& program, Bytes limit)
    : program_(program), limit_(limit), order_(legal_order(program)) {}

// Every order within the limit is an order of `program_`: an arc is added only if the opposite
// order of its two operators needs more than the limit, by a minimum cut. An arc makes the cuts of
// others larger, so the operators are visited again until a whole turn adds none. If an operator
// cannot run within the limit, or the arcs have a cycle, no order is within it.
Narrowing::End Narrowing::run(const std::vector<OperatorIdx>& operators, std::int64_t& flows,
                              Counter& counter) {
  bool grows = true;
  while (grows) {
    grows = false;
    for (const OperatorIdx op : operators) {
      if (flows <= 0 || counter.is_spent()) return End::kSpent;
      Arcs arcs;
      if (!visit(op, flows, counter, arcs) || !add(arcs)) return End::kRefuted;
      grows = grows || !arcs.empty();
    }
  }
  return End::kNarrowed;
}

// Finds the arcs of one operator; returns whether it can be within the limit at all.
//
// A cut within the limit is a case in which `op` can run: all on the side of the source before it,
// and all on the side of the sink after it. One case answers for many operators, and for all of
// them if `op` fits even when every open operator has run, or none. A flow is needed only for an
// operator that no case had before `op` (or after it); it goes on from the flow of `op` alone. What
// waits for an operator that cannot run before `op` cannot either.
bool Narrowing::visit(OperatorIdx op, std::int64_t& flows, Counter& counter, Arcs& arcs) {
  const Network network(program_, op);
  const Bytes own = program_.base + own_bytes(program_, op);
  const bool may_all_run = own + network.live_after_all() <= limit_;
  const bool may_none_run = own + network.live_before_all() <= limit_;
  if (may_all_run && may_none_run) return true;
  --flows;
  counter.take();
  Flow flow = network.make_flow();
  const Bytes least = own + flow.maximize(limit_ - own);
  if (least > limit_) return false;
  bound_ = std::max(bound_, least);
  // Open operators that run before `op` in some case within the limit, and those that run after.
  std::vector<std::uint8_t> before(program_.workspace.size(), 0);
  std::vector<std::uint8_t> after(program_.workspace.size(), 0);
  const auto note_case = [&](const Flow& solved) {
    const std::vector<std::uint8_t> is_late = solved.nodes_before_sink();
    for (OperatorIdx u = 0; u < program_.operators(); ++u) {
      if (is_late[network.node_of(u)] == 0) before[u] = 1;
      if (!solved.is_reached(network.node_of(u))) after[u] = 1;
    }
  };
  note_case(flow);
  const auto is_possible = [&](OperatorIdx u, bool runs_before) {
    --flows;
    counter.take();
    Flow trial = flow;
    const std::int32_t node = network.node_of(u);
    trial.add(runs_before ? Flow::kSource : node, runs_before ? node : Flow::kSink, kMaxBytes);
    if (least + trial.maximize(limit_ - least) > limit_) return false;
    note_case(trial);
    return true;
  };
  // Finds what cannot run before `op`, or cannot run after it; what waits for such an operator
  // cannot either, or what it waits for.
  const auto find_arcs = [&](bool runs_before) {
    const std::vector<std::uint8_t>& is_known = runs_before ? before : after;
    const Lists<OperatorIdx>& neighbours = runs_before ? program_.before : program_.after;
    std::vector<std::uint8_t> cannot(program_.workspace.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const OperatorIdx u = order_[runs_before ? i : order_.size() - 1 - i];
      if (!network.is_open(u) || is_known[u] != 0) continue;
      const auto nearer = neighbours[u];
      if (std::any_of(nearer.begin(), nearer.end(),
                      [&](OperatorIdx other) { return cannot[other] != 0; })) {
        cannot[u] = 1;
      } else if (!is_possible(u, runs_before)) {
        cannot[u] = 1;
        arcs.emplace_back(runs_before ? op : u, runs_before ? u : op);
      }
    }
  };
  if (!may_all_run) find_arcs(true);
  if (!may_none_run) find_arcs(false);
  return true;
}

// Adds arcs; returns whether there is still an order.
bool Narrowing::add(const Arcs& arcs) {
  if (arcs.empty()) return true;
  has_arcs_ = true;
  program_ = with_arcs(std::move(program_), arcs);
  order_ = legal_order(program_);
  return order_.size() == program_.workspace.size();
}

}  // namespace memplan::order
