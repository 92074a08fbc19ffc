#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "memplan/order.h"

namespace memplan {

namespace {

const OperatorIdx* first_user(const OrderProblem& problem, StorageIdx storage) {
  return problem.user.data() + problem.user_begin[storage];
}

std::string check_storage(const OrderProblem& problem, StorageIdx storage) {
  const std::string name = "storage " + std::to_string(storage);
  if (problem.size[storage] < 0 || problem.size[storage] > kMaxBytes) {
    return name + " must have between 0 and 2^62 bytes";
  }
  OperatorIdx before = -1;
  for (const OperatorIdx* user = first_user(problem, storage);
       user != first_user(problem, storage + 1); ++user) {
    if (*user <= before || *user >= problem.operators()) {
      return "the users of " + name + " must be operators, ascending, each once";
    }
    before = *user;
  }
  return "";
}

bool touches(const OrderProblem& problem, OperatorIdx op, StorageIdx storage) {
  return std::binary_search(first_user(problem, storage), first_user(problem, storage + 1), op);
}

}  // namespace

std::string check(const OrderProblem& problem) {
  const auto storages = problem.size.size();
  if (problem.given.size() != storages || problem.wanted.size() != storages ||
      problem.user_begin.size() != storages + 1) {
    return "the columns of storages must have one row for each";
  }
  if (problem.user_begin.front() != 0 ||
      problem.user_begin.back() != static_cast<std::int64_t>(problem.user.size()) ||
      !std::is_sorted(problem.user_begin.begin(), problem.user_begin.end())) {
    return "user_begin must ascend from 0 to the number of users";
  }
  unsigned long long total = 0;
  for (StorageIdx s = 0; s < problem.storages(); ++s) {
    if (std::string wrong = check_storage(problem, s); !wrong.empty()) return wrong;
    total += static_cast<unsigned long long>(problem.size[s]);
    if (total > static_cast<unsigned long long>(kMaxBytes)) break;  // a longer sum may wrap around
  }
  unsigned long long largest = 0;
  for (OperatorIdx v = 0; v < problem.operators(); ++v) {
    if (problem.workspace[v] < 0 || problem.workspace[v] > kMaxBytes) {
      return "operator " + std::to_string(v) + " must have a workspace between 0 and 2^62 bytes";
    }
    largest = std::max(largest, static_cast<unsigned long long>(problem.workspace[v]));
  }
  if (total + largest > static_cast<unsigned long long>(kMaxBytes)) {
    return "all storages and the largest workspace together have more than 2^62 bytes";
  }
  for (const Arc& arc : problem.arcs) {
    if (arc.from < 0 || arc.from >= arc.to || arc.to >= problem.operators()) {
      return "an arc must lead from an operator to one with a higher number";
    }
  }
  for (const InPlace& pair : problem.in_place) {
    const bool exists = pair.op >= 0 && pair.op < problem.operators() && pair.input >= 0 &&
                        pair.input < problem.storages() && pair.output >= 0 &&
                        pair.output < problem.storages();
    if (!exists || pair.input == pair.output || !touches(problem, pair.op, pair.input) ||
        !touches(problem, pair.op, pair.output)) {
      return "an in-place pair must be two storages that its operator touches";
    }
  }
  return "";
}

}  // namespace memplan
