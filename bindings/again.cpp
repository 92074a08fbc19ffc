#include "memplan/again.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "caller.h"
#include "columns.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

using Arcs = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

Arcs listed(const std::vector<FlowArc>& flow) {
  Arcs arcs;
  arcs.reserve(flow.size());
  for (const FlowArc& arc : flow) arcs.emplace_back(arc.from, arc.to, arc.amount);
  return arcs;
}

RecomputeProblem make_problem(const OrderProblem& program, const Column<std::int64_t>& cost,
                              const Column<std::uint8_t>& again, const Column<OperatorIdx>& maker,
                              const Column<std::int64_t>& move) {
  RecomputeProblem problem{program, copied(cost), copied(again), copied(maker), copied(move)};
  if (const std::string wrong = check(problem); !wrong.empty()) {
    throw nb::value_error(wrong.c_str());
  }
  return problem;
}

// Every rule of the core by its name.
bool& rule_of(RecomputeRules& rules, const std::string& wanted) {
#define ROW(type, name, preset, says) \
  if (wanted == #name) return rules.name;
  MEMPLAN_RECOMPUTE_RULES(ROW)
#undef ROW
  throw nb::value_error(("there is no rule " + wanted).c_str());
}

std::vector<std::string> recompute_rules() {
#define ROW(type, name, preset, says) #name,
  return {MEMPLAN_RECOMPUTE_RULES(ROW)};
#undef ROW
}

RecomputeResult call_recompute(const RecomputeProblem& problem, Bytes capacity,
                               std::optional<double> seconds, std::optional<std::int64_t> nodes,
                               bool free_order, const std::vector<std::string>& without) {
  RecomputeOptions options;
  limit(&options.budget, seconds, nodes);
  options.free_order = free_order;
  for (const std::string& name : without) rule_of(options.rules, name) = false;
  Caller caller(std::nullopt, std::nullopt);
  return search_for(&caller, &options, [&] { return recompute(problem, capacity, options); });
}

}  // namespace

void bind_again(nb::module_& m) {
  nb::class_<RecomputeProblem>(m, "RecomputeProblem",
                               "A program, what runs cost, and who may run again; columns, copied.")
      .def(
          "__init__",
          [](RecomputeProblem* self, const OrderProblem& program, const Column<std::int64_t>& cost,
             const Column<std::uint8_t>& again, const Column<OperatorIdx>& maker,
             const Column<std::int64_t>& move) {
            new (self) RecomputeProblem(make_problem(program, cost, again, maker, move));
          },
          "program"_a, "cost"_a, "again"_a, "maker"_a, "move"_a)
      .def(
          "load_of",
          [](const RecomputeProblem& problem, const std::vector<OperatorIdx>& runs) {
            const Load load = load_of(problem, runs);
            return std::make_pair(load.peak, load.extra);
          },
          "runs"_a, "The peak of a legal sequence, and what its re-runs cost.");

  nb::class_<CutLeaf>(m, "CutLeaf", "A case of a proof, with the flow that bounds it.")
      .def_prop_ro(
          "decisions",
          [](const CutLeaf& leaf) {
            std::vector<std::pair<OperatorIdx, std::int32_t>> decisions;
            for (const Decision& decision : leaf.decisions) {
              decisions.emplace_back(decision.op, static_cast<std::int32_t>(decision.choice));
            }
            return decisions;
          },
          "Operator and choice, from the root on.")
      .def_ro("price", &CutLeaf::price)
      .def_prop_ro(
          "flow", [](const CutLeaf& leaf) { return listed(leaf.flow); }, "From, to, amount.");

  nb::class_<RecomputeProof>(m, "RecomputeProof", "Proves a bound on the cost of re-runs.")
      .def_ro("op", &RecomputeProof::op)
      .def_ro("unit", &RecomputeProof::unit)
      .def_ro("scale", &RecomputeProof::scale)
      .def_ro("shift", &RecomputeProof::shift)
      .def_ro("leaves", &RecomputeProof::leaves);

  nb::class_<OrderLeaf>(m, "OrderLeaf", "A case of a proof for the given order.")
      .def_prop_ro(
          "decisions",
          [](const OrderLeaf& leaf) {
            std::vector<std::pair<std::int32_t, bool>> decisions;
            for (const OrderDecision& each : leaf.decisions) {
              decisions.emplace_back(each.variable, each.value != 0);
            }
            return decisions;
          },
          "Variable and value, from the root on.")
      .def_ro("is_impossible", &OrderLeaf::is_impossible)
      .def_ro("prices", &OrderLeaf::prices)
      .def_prop_ro(
          "needs",
          [](const OrderLeaf& leaf) {
            std::vector<std::tuple<std::int32_t, std::int32_t, StorageIdx, std::int64_t>> needs;
            for (const OrderNeed& each : leaf.needs) {
              needs.emplace_back(each.block, each.variable, each.storage, each.amount);
            }
            return needs;
          },
          "Block, what needs a storage in it, the storage, multiplier.");

  nb::class_<OrderProof>(m, "OrderProof", "Proves a bound for first runs in the given order.")
      .def_ro("moments", &OrderProof::moments)
      .def_ro("unit", &OrderProof::unit)
      .def_ro("scale", &OrderProof::scale)
      .def_ro("shift", &OrderProof::shift)
      .def_ro("leaves", &OrderProof::leaves);

  nb::class_<RecomputeResult>(m, "RecomputeResult",
                              "The best sequence found, and bounds on all that fit.")
      .def_ro("runs", &RecomputeResult::runs)
      .def_ro("peak", &RecomputeResult::peak)
      .def_ro("extra", &RecomputeResult::extra)
      .def_ro("bound", &RecomputeResult::bound)
      .def_ro("order_bound", &RecomputeResult::order_bound)
      .def_prop_ro("status",
                   [](const RecomputeResult& result) { return std::string(name(result.status)); })
      .def_ro("floor", &RecomputeResult::floor)
      .def_ro("floor_op", &RecomputeResult::floor_op)
      .def_prop_ro(
          "floor_flow", [](const RecomputeResult& result) { return listed(result.floor_flow); },
          "The flow that proves the floor: from, to, amount.")
      .def_prop_ro(
          "moment", [](const RecomputeResult& result) { return result.certificate.op; },
          "The operator whose cut is the bound, or -1.")
      .def_ro("certificate", &RecomputeResult::certificate)
      .def_ro("order_certificate", &RecomputeResult::order_certificate)
      .def_ro("nodes", &RecomputeResult::nodes)
      .def_ro("interrupted", &RecomputeResult::interrupted);

  m.def("recompute", &call_recompute, "problem"_a, "capacity"_a, "seconds"_a.none(),
        "nodes"_a.none(), "free_order"_a, "without"_a,
        "The best sequence within the budget, without the rules that are named. Without the GIL.");
  m.def("recompute_rules", &recompute_rules, "The names of the rules that can be switched off.");
}

}  // namespace memplan::python
