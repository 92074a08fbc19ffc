// Tests of the search for an order: against all orders of small programs, and its certificates.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "check.h"
#include "memplan/order.h"

using namespace memplan;

namespace {

struct Shape {
  int operators;
  int storages;
  bool in_place;
};

// Every storage is made by one operator, or is given, and is read by some that come later.
OrderProblem random_problem(unsigned seed, const Shape& shape) {
  std::mt19937 random(seed);
  const auto pick = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  OrderProblem problem;
  const int n = pick(1, shape.operators);
  const int m = pick(0, shape.storages);
  for (int v = 0; v < n; ++v) problem.workspace.push_back(pick(0, 4) == 0 ? pick(0, 9) : 0);
  problem.user_begin.push_back(0);
  std::vector<int> maker(m, -1);
  for (int s = 0; s < m; ++s) {
    problem.size.push_back(pick(0, 9));
    const bool given = pick(0, 5) == 0;
    problem.given.push_back(given ? 1 : 0);
    problem.wanted.push_back(pick(0, 5) == 0 ? 1 : 0);
    std::set<OperatorIdx> users;
    if (!given) users.insert(maker[s] = pick(0, n - 1));
    for (int i = pick(0, 3); i > 0; --i) {
      const int reader = pick(given ? 0 : maker[s], n - 1);
      if (!given && reader != maker[s]) problem.arcs.push_back({maker[s], reader});
      users.insert(reader);
    }
    problem.user.insert(problem.user.end(), users.begin(), users.end());
    problem.user_begin.push_back(static_cast<std::int64_t>(problem.user.size()));
    for (int other = 0; other < s && shape.in_place; ++other) {
      const auto first = problem.user.begin() + problem.user_begin[other];
      const auto last = problem.user.begin() + problem.user_begin[other + 1];
      if (!given && std::find(first, last, maker[s]) != last) {
        problem.in_place.push_back({maker[s], other, s});
      }
    }
  }
  for (int i = pick(0, 2); i > 0 && n > 1; --i) {
    const int from = pick(0, n - 2);
    problem.arcs.push_back({from, pick(from + 1, n - 1)});
  }
  return problem;
}

// The least peak over all orders, by trying all of them.
Bytes least_peak(const OrderProblem& problem) {
  std::vector<OperatorIdx> order(problem.workspace.size());
  std::iota(order.begin(), order.end(), 0);
  Bytes least = kMaxBytes;
  do {
    std::vector<std::size_t> place(order.size());
    for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = at;
    const bool is_legal = std::all_of(problem.arcs.begin(), problem.arcs.end(),
                                      [&](const Arc& a) { return place[a.from] < place[a.to]; });
    if (is_legal) least = std::min(least, peak_of_order(problem, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

void check_all_orders(const OrderProblem& problem, const OrderRules& rules) {
  OrderOptions options;
  options.rules = rules;
  const OrderResult result = best_order(problem, options);
  CHECK(result.status == Status::kOptimal);
  CHECK(result.peak == least_peak(problem));
  CHECK(result.bound == result.peak);
  CHECK(peak_of_order(problem, result.order) == result.peak);
}

TEST(the_least_peak_of_all_orders_is_found) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    check_all_orders(random_problem(seed, {7, 9, seed % 2 == 0}), {});
  }
}

TEST(no_rule_changes_the_answer) {
  for (unsigned seed = 1000; seed < 1120; ++seed) {
    const OrderProblem problem = random_problem(seed, {6, 8, seed % 2 == 0});
    for (bool OrderRules::* const rule :
         {&OrderRules::segments, &OrderRules::commits, &OrderRules::valleys, &OrderRules::delays,
          &OrderRules::cuts, &OrderRules::beams, &OrderRules::backwards, &OrderRules::windows}) {
      OrderRules rules;
      rules.*rule = false;
      check_all_orders(problem, rules);
    }
  }
}

TEST(a_budget_of_states_gives_a_valid_bound) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const OrderProblem problem = random_problem(seed, {60, 90, seed % 2 == 0});
    OrderOptions options;
    options.budget.nodes = 50 + 100 * static_cast<std::int64_t>(seed);
    const OrderResult few = best_order(problem, options);
    const OrderResult again = best_order(problem, options);
    CHECK(few.order == again.order && few.bound == again.bound);
    CHECK(few.bound <= few.peak);
    options.budget.nodes = 20000;
    const OrderResult many = best_order(problem, options);
    CHECK(few.bound <= many.peak && many.bound <= few.peak);
  }
}

}  // namespace

TEST_MAIN
