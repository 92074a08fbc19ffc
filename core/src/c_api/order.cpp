#include "memplan/order.h"

#include <memory>
#include <vector>

#include "c_api/door.h"

struct memplan_order {
  memplan::OrderResult result;
};

namespace memplan::c_api {

namespace {

template <typename T>
std::vector<T> copied_rows(const T* column, std::size_t rows) {
  require(rows <= kMostRows, "a column of the program is too long");
  require(rows == 0 || column != nullptr, "a column of the program must not be NULL");
  return {column, column + rows};
}

template <typename T>
std::vector<T> rows_or_zeros(const T* column, std::size_t rows) {
  require(rows <= kMostRows, "a column of the program is too long");
  return column == nullptr ? std::vector<T>(rows, 0) : copied_rows(column, rows);
}

OrderProblem converted_program(const memplan_program& given) {
  OrderProblem problem;
  problem.workspace = rows_or_zeros(given.workspace, given.operators);
  const std::vector<OperatorIdx> from = copied_rows(given.arc_from, given.arcs);
  const std::vector<OperatorIdx> to = copied_rows(given.arc_to, given.arcs);
  for (std::size_t i = 0; i < from.size(); ++i) problem.arcs.push_back({from[i], to[i]});
  problem.size = copied_rows(given.size, given.storages);
  problem.given = rows_or_zeros(given.given, given.storages);
  problem.wanted = rows_or_zeros(given.wanted, given.storages);
  problem.user_begin = given.storages == 0 && given.user_begin == nullptr
                           ? std::vector<std::int64_t>{0}
                           : copied_rows(given.user_begin, given.storages + 1);
  require(problem.user_begin.back() >= 0, "user_begin must ascend from 0 to the number of users");
  problem.user = copied_rows(given.user, static_cast<std::size_t>(problem.user_begin.back()));
  const std::vector<OperatorIdx> op = copied_rows(given.pair_op, given.pairs);
  const std::vector<StorageIdx> input = copied_rows(given.pair_input, given.pairs);
  const std::vector<StorageIdx> output = copied_rows(given.pair_output, given.pairs);
  for (std::size_t i = 0; i < op.size(); ++i) {
    problem.in_place.push_back({op[i], input[i], output[i]});
  }
  return problem;
}

}  // namespace

}  // namespace memplan::c_api

memplan_order* memplan_best_order(const memplan_program* program, const memplan_options* options,
                                  char* error, size_t error_size) {
  using namespace memplan::c_api;
  return guarded(static_cast<memplan_order*>(nullptr), error, error_size, [&] {
    require(program != nullptr, "the program must not be NULL");
    const memplan::SolveOptions solving = converted(options);
    memplan::OrderOptions chosen;
    chosen.budget = solving.budget;
    chosen.interrupt = solving.interrupt;
    auto order = std::make_unique<memplan_order>();
    order->result = memplan::best_order(converted_program(*program), chosen);
    return order.release();
  });
}

void memplan_order_free(memplan_order* order) { delete order; }

memplan_status memplan_order_status(const memplan_order* order) {
  if (order == nullptr) return MEMPLAN_UNKNOWN;
  return order->result.status == memplan::Status::kOptimal ? MEMPLAN_OPTIMAL : MEMPLAN_FEASIBLE;
}

size_t memplan_order_count(const memplan_order* order) {
  return order == nullptr ? 0 : order->result.order.size();
}

const int32_t* memplan_order_operators(const memplan_order* order) {
  return order == nullptr ? nullptr : order->result.order.data();
}

int64_t memplan_order_peak(const memplan_order* order) {
  return order == nullptr ? 0 : order->result.peak;
}

int64_t memplan_order_lower_bound(const memplan_order* order) {
  return order == nullptr ? 0 : order->result.bound;
}

int memplan_order_interrupted(const memplan_order* order) {
  return order != nullptr && order->result.interrupted ? 1 : 0;
}
