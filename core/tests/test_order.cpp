// Tests of the search for an order: against all orders of small programs, and its certificates.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
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
#define ROW(type, name, preset, says) &OrderRules::name,
    for (bool OrderRules::* const rule : {MEMPLAN_ORDER_RULES(ROW)}) {
#undef ROW
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

// The certificate on the arcs of the program: what leaves and enters each node is equal, no storage
// carries more than its bytes, and no arc exists that the network does not have.
void check_certificate(const OrderProblem& problem, const OrderResult& result) {
  const std::int64_t n = problem.operators();
  const OperatorIdx op = result.certificate.op;
  std::vector<std::vector<OperatorIdx>> after(problem.workspace.size());
  for (const Arc& arc : problem.arcs) after[arc.from].push_back(arc.to);
  const auto reached = [&](OperatorIdx from, OperatorIdx to) {
    std::set<OperatorIdx> met{from};
    std::vector<OperatorIdx> todo{from};
    while (!todo.empty()) {
      const OperatorIdx at = todo.back();
      todo.pop_back();
      for (const OperatorIdx next : after[at]) {
        if (met.insert(next).second) todo.push_back(next);
      }
    }
    return met.count(to) > 0;
  };
  const auto node_of = [&](OperatorIdx u) -> std::int64_t {
    return reached(op, u) ? 1 : reached(u, op) ? 0 : 2 + u;
  };
  std::set<std::pair<std::int64_t, std::int64_t>> free_arcs;
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> capacity;
  for (const Arc& arc : problem.arcs) free_arcs.insert({node_of(arc.to), node_of(arc.from)});
  Bytes own = problem.workspace[op];
  for (StorageIdx s = 0; s < problem.storages(); ++s) {
    const auto first = problem.user.begin() + problem.user_begin[s];
    const auto last = problem.user.begin() + problem.user_begin[s + 1];
    if (std::find(first, last, op) != last) {
      own += problem.size[s];
      continue;
    }
    const std::int64_t begin = 2 + n + 2 * std::int64_t{s};
    capacity[{begin, begin + 1}] = problem.size[s];
    if (problem.given[s] != 0) free_arcs.insert({0, begin});
    if (problem.wanted[s] != 0) free_arcs.insert({begin + 1, 1});
    for (auto user = first; user != last; ++user) {
      free_arcs.insert({node_of(*user), begin});
      free_arcs.insert({begin + 1, node_of(*user)});
    }
  }
  std::map<std::int64_t, Bytes> excess;
  for (const FlowArc& arc : result.certificate.flow) {
    CHECK(arc.amount > 0);
    const auto limit = capacity.find({arc.from, arc.to});
    CHECK(limit != capacity.end() ? arc.amount <= limit->second
                                  : free_arcs.count({arc.from, arc.to}) > 0);
    excess[arc.from] -= arc.amount;
    excess[arc.to] += arc.amount;
  }
  for (const auto& [node, amount] : excess) CHECK(node <= 1 || amount == 0);
  CHECK(result.bound == own + excess[1]);
}

TEST(a_flow_certifies_the_bound) {
  int certificates = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const OrderProblem problem = random_problem(seed, {20, 30, false});
    const OrderResult result = best_order(problem);
    if (result.certificate.op < 0) continue;
    check_certificate(problem, result);
    ++certificates;
  }
  CHECK(certificates > 20);
}

TEST(sums_beyond_two_to_the_53_are_exact) {
  OrderProblem problem = random_problem(7, {7, 9, true});
  for (Bytes& size : problem.size) size = size * (kMaxBytes / 128) + 1;
  check_all_orders(problem, {});
}

TEST(an_illegal_order_has_no_peak) {
  OrderProblem problem;
  problem.workspace = {1, 2};
  problem.arcs = {{0, 1}};
  problem.user_begin = {0};
  CHECK(peak_of_order(problem, {0, 1}) == 2);
  const std::vector<std::vector<OperatorIdx>> illegal{{1, 0}, {0}, {0, 0}, {0, 99}, {-1, 0}};
  for (const std::vector<OperatorIdx>& order : illegal) {
    bool refused = false;
    try {
      peak_of_order(problem, order);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
}

TEST(a_deep_search_agrees_in_both_directions) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const OrderProblem problem = random_problem(seed, {40, 70, seed % 2 == 0});
    OrderOptions options;
    const Bytes peak = best_order(problem, options).peak;
    options.rules = {};
    options.rules.delays = options.rules.cuts = options.rules.beams = false;
    const OrderResult plain = best_order(problem, options);
    CHECK(plain.status == Status::kOptimal && plain.peak == peak);
  }
}

}  // namespace

TEST_MAIN
