#include "memplan/order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace memplan {

Bytes peak_of_order(const OrderProblem& problem, const std::vector<OperatorIdx>& order) {
  std::vector<std::vector<StorageIdx>> touched(problem.workspace.size());
  std::vector<std::int64_t> left(problem.size.size());
  std::vector<std::uint8_t> born = problem.given;
  Bytes live = 0;
  for (StorageIdx s = 0; s < problem.storages(); ++s) {
    left[s] = problem.user_begin[s + 1] - problem.user_begin[s];
    if (problem.given[s] != 0 && (left[s] > 0 || problem.wanted[s] != 0)) live += problem.size[s];
    for (std::int64_t i = problem.user_begin[s]; i < problem.user_begin[s + 1]; ++i) {
      touched[problem.user[i]].push_back(s);
    }
  }
  Bytes peak = live;
  for (const OperatorIdx v : order) {
    for (const StorageIdx s : touched[v]) {
      if (born[s] == 0) live += problem.size[s];
      born[s] = 1;
    }
    peak = std::max(peak, live + problem.workspace[v]);
    for (const StorageIdx s : touched[v]) {
      if (--left[s] == 0 && problem.wanted[s] == 0) live -= problem.size[s];
    }
  }
  return peak;
}

OrderResult best_order(const OrderProblem& problem, const OrderOptions&) {
  if (const std::string wrong = check(problem); !wrong.empty()) throw std::invalid_argument(wrong);
  OrderResult result;
  result.order.resize(problem.workspace.size());
  std::iota(result.order.begin(), result.order.end(), 0);
  result.peak = peak_of_order(problem, result.order);
  result.status = result.bound == result.peak ? Status::kOptimal : Status::kFeasible;
  return result;
}

}  // namespace memplan
