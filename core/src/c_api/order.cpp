#include <memory>
#include <string>
#include <vector>

#include "c_api/door.h"
#include "order/attempt.h"

struct memplan_order {
  memplan::OrderResult result;
};

namespace memplan::c_api {

namespace {

// Copies columns of C. What is wrong with the first bad one is kept, and no more is copied.
class Columns {
 public:
  const char* fault() const { return fault_; }

  template <typename T>
  std::vector<T> copy(const T* column, std::size_t rows) {
    if (rows > kMostRows) return refuse<T>("a column of the program is too long");
    if (rows > 0 && column == nullptr) return refuse<T>("a column of the program must not be NULL");
    return *fault_ == '\0' ? std::vector<T>(column, column + rows) : std::vector<T>();
  }
  template <typename T>
  std::vector<T> copy_or_zeros(const T* column, std::size_t rows) {
    if (column != nullptr || rows > kMostRows) return copy(column, rows);
    return std::vector<T>(rows, 0);
  }
  // The number of users, which is the last row of user_begin.
  std::size_t users(const std::vector<std::int64_t>& user_begin) {
    if (*fault_ != '\0') return 0;
    if (user_begin.back() >= 0) return static_cast<std::size_t>(user_begin.back());
    fault_ = "user_begin must ascend from 0 to the number of users";
    return 0;
  }

 private:
  template <typename T>
  std::vector<T> refuse(const char* fault) {
    if (*fault_ == '\0') fault_ = fault;
    return {};
  }

  const char* fault_ = "";
};

// Returns what is wrong, or nothing.
const char* convert_program(const memplan_program& given, OrderProblem* problem) {
  Columns columns;
  problem->workspace = columns.copy_or_zeros(given.workspace, given.operators);
  const std::vector<OperatorIdx> from = columns.copy(given.arc_from, given.arcs);
  const std::vector<OperatorIdx> to = columns.copy(given.arc_to, given.arcs);
  problem->size = columns.copy(given.size, given.storages);
  problem->given = columns.copy_or_zeros(given.given, given.storages);
  problem->wanted = columns.copy_or_zeros(given.wanted, given.storages);
  problem->user_begin = given.storages == 0 && given.user_begin == nullptr
                            ? std::vector<std::int64_t>{0}
                            : columns.copy(given.user_begin, given.storages + 1);
  problem->user = columns.copy(given.user, columns.users(problem->user_begin));
  const std::vector<OperatorIdx> op = columns.copy(given.pair_op, given.pairs);
  const std::vector<StorageIdx> input = columns.copy(given.pair_input, given.pairs);
  const std::vector<StorageIdx> output = columns.copy(given.pair_output, given.pairs);
  if (*columns.fault() != '\0') return columns.fault();
  for (std::size_t i = 0; i < from.size(); ++i) problem->arcs.push_back({from[i], to[i]});
  for (std::size_t i = 0; i < op.size(); ++i) {
    problem->in_place.push_back({op[i], input[i], output[i]});
  }
  return "";
}

}  // namespace

}  // namespace memplan::c_api

memplan_order* memplan_best_order(const memplan_program* program, const memplan_options* options,
                                  char* error, size_t error_size) {
  using namespace memplan::c_api;
  std::unique_ptr<memplan_order> order;
  const bool done = guarded(error, error_size, [&]() -> std::string {
    if (program == nullptr) return "the program must not be NULL";
    memplan::SolveOptions solving;
    if (std::string fault = convert(options, &solving); !fault.empty()) return fault;
    memplan::OrderOptions chosen;
    chosen.budget = solving.budget;
    chosen.interrupt = solving.interrupt;
    memplan::OrderProblem problem;
    const char* fault = convert_program(*program, &problem);
    if (*fault != '\0') return fault;
    order = std::make_unique<memplan_order>();
    return memplan::try_best_order(problem, chosen, &order->result);
  });
  return done ? order.release() : nullptr;
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
