#include "memplan/order.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caller.h"
#include "columns.h"
#include "parts.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace memplan::python {

namespace {

OrderProblem make_problem(const Column<Bytes>& workspace, const Column<OperatorIdx>& arc_from,
                          const Column<OperatorIdx>& arc_to, const Column<Bytes>& size,
                          const Column<std::uint8_t>& given, const Column<std::uint8_t>& wanted,
                          const Column<std::int64_t>& user_begin, const Column<OperatorIdx>& user,
                          const Column<std::int32_t>& in_place) {
  if (arc_from.size() != arc_to.size()) {
    throw nb::value_error("arc_from and arc_to must have as many rows as each other");
  }
  if (in_place.size() % 3 != 0) {
    throw nb::value_error("in_place must have three numbers for each pair");
  }
  OrderProblem problem;
  problem.workspace = copied(workspace);
  for (std::size_t i = 0; i < arc_from.size(); ++i) {
    problem.arcs.push_back({arc_from(i), arc_to(i)});
  }
  problem.size = copied(size);
  problem.given = copied(given);
  problem.wanted = copied(wanted);
  problem.user_begin = copied(user_begin);
  problem.user = copied(user);
  for (std::size_t i = 0; i < in_place.size(); i += 3) {
    problem.in_place.push_back({in_place(i), in_place(i + 1), in_place(i + 2)});
  }
  if (const std::string wrong = check(problem); !wrong.empty()) {
    throw nb::value_error(wrong.c_str());
  }
  return problem;
}

// Every rule of the core by its name.
bool& rule_of(OrderRules& rules, const std::string& wanted) {
#define ROW(type, name, preset, says) \
  if (wanted == #name) return rules.name;
  MEMPLAN_ORDER_RULES(ROW)
#undef ROW
  throw nb::value_error(("there is no rule " + wanted).c_str());
}

std::vector<std::string> order_rules() {
#define ROW(type, name, preset, says) #name,
  return {MEMPLAN_ORDER_RULES(ROW)};
#undef ROW
}

OrderResult call_best_order(const OrderProblem& problem, std::optional<double> seconds,
                            std::optional<std::int64_t> states,
                            const std::vector<std::string>& without) {
  OrderOptions options;
  limit(&options.budget, seconds, states);
  for (const std::string& name : without) rule_of(options.rules, name) = false;
  Caller caller(std::nullopt, std::nullopt);
  return search_for(&caller, &options, [&] { return best_order(problem, options); });
}

}  // namespace

void bind_order(nb::module_& m) {
  nb::class_<OrderProblem>(m, "OrderProblem", "Operators and storages; columns, copied.")
      .def(
          "__init__",
          [](OrderProblem* self, const Column<Bytes>& workspace,
             const Column<OperatorIdx>& arc_from, const Column<OperatorIdx>& arc_to,
             const Column<Bytes>& size, const Column<std::uint8_t>& given,
             const Column<std::uint8_t>& wanted, const Column<std::int64_t>& user_begin,
             const Column<OperatorIdx>& user, const Column<std::int32_t>& in_place) {
            new (self) OrderProblem(make_problem(workspace, arc_from, arc_to, size, given, wanted,
                                                 user_begin, user, in_place));
          },
          "workspace"_a, "arc_from"_a, "arc_to"_a, "size"_a, "given"_a, "wanted"_a, "user_begin"_a,
          "user"_a, "in_place"_a)
      .def(
          "peak_of",
          [](const OrderProblem& problem, const std::vector<OperatorIdx>& order) {
            return peak_of_order(problem, order);
          },
          "order"_a, "The peak of a legal order of all operators.");

  nb::class_<OrderResult>(m, "OrderResult", "The best order found, and a bound on every order.")
      .def_ro("order", &OrderResult::order)
      .def_ro("peak", &OrderResult::peak)
      .def_ro("bound", &OrderResult::bound)
      .def_prop_ro("status",
                   [](const OrderResult& result) { return std::string(name(result.status)); })
      .def_prop_ro(
          "operator", [](const OrderResult& result) { return result.certificate.op; },
          "The operator whose cut is the bound, or -1.")
      .def_prop_ro(
          "done", [](const OrderResult& result) { return result.certificate.done; },
          "What has run before that operator in the cheapest case.")
      .def_prop_ro(
          "flow",
          [](const OrderResult& result) {
            std::vector<std::vector<std::int64_t>> arcs;
            for (const FlowArc& arc : result.certificate.flow) {
              arcs.push_back({arc.from, arc.to, arc.amount});
            }
            return arcs;
          },
          "The flow that proves the bound: from, to, amount.")
      .def_ro("states", &OrderResult::states)
      .def_ro("interrupted", &OrderResult::interrupted);

  m.def("best_order", &call_best_order, "problem"_a, "seconds"_a.none(), "states"_a.none(),
        "without"_a,
        "The best order within the budget, without the rules that are named. Without the GIL.");
  m.def("order_rules", &order_rules, "The names of the rules that can be switched off.");
}

}  // namespace memplan::python
