// Tests of the sweep over full sections: the tree of orders, and the answers that come from it.
#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "exact/pq_tree.h"
#include "exact/task.h"
#include "exact/tiling.h"
#include "exact/tiling_ways.h"
#include "memplan/exact.h"
#include "model/items.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

using Order = std::vector<int>;

// Orders in which `out` is consecutive, with every permutation of `in` in its place.
std::set<Order> exchanged(const std::set<Order>& orders, const Order& out, Order in) {
  std::set<Order> result;
  std::sort(in.begin(), in.end());
  for (const Order& order : orders) {
    const auto leaves = [&](int leaf) {
      return std::find(out.begin(), out.end(), leaf) != out.end();
    };
    const auto begin = std::find_if(order.begin(), order.end(), leaves);
    const auto end = begin + static_cast<std::ptrdiff_t>(out.size());
    if (std::distance(begin, order.end()) < std::distance(begin, end)) continue;
    if (!std::all_of(begin, end, leaves)) continue;
    do {
      Order next(order.begin(), begin);
      next.insert(next.end(), in.begin(), in.end());
      next.insert(next.end(), end, order.end());
      result.insert(next);
    } while (std::next_permutation(in.begin(), in.end()));
  }
  return result;
}

// Fills the holes that `out` leaves in an order with `in`, in exactly this order; empty if the
// sizes do not allow it.
Order filled(const Problem& problem, const Order& order, const std::vector<char>& out,
             const Order& in) {
  Order result;
  std::size_t next = 0;
  Bytes hole = 0;
  for (const int b : order) {
    if (out[static_cast<std::size_t>(b)] != 0) {
      hole += problem.size[b];
      continue;
    }
    while (hole > 0 && next < in.size()) {
      hole -= problem.size[in[next]];
      result.push_back(in[next++]);
    }
    if (hole != 0) return {};
    result.push_back(b);
  }
  while (next < in.size()) result.push_back(in[next++]);
  return result;
}

int most_live(const Problem& problem, Time sections) {
  int most = 0;
  for (Time time = 0; time < sections; ++time) {
    int live = 0;
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      live += problem.start[b] <= time && time < problem.end[b] ? 1 : 0;
    }
    most = std::max(most, live);
  }
  return most;
}

// Whether a problem in which every section is full has a plan: all address orders of every
// section that one of the section before leads to.
bool tiles(const Problem& problem, Time sections) {
  std::set<Order> orders;
  for (Time time = 0; time < sections; ++time) {
    Order in;
    std::vector<char> out(problem.size.size(), 0);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (problem.start[b] == time) in.push_back(b);
      out[static_cast<std::size_t>(b)] = problem.end[b] == time ? 1 : 0;
    }
    std::set<Order> next;
    do {
      if (time == 0) next.insert(in);
      for (const Order& order : orders) {
        const Order after = filled(problem, order, out, in);
        if (!after.empty()) next.insert(after);
      }
    } while (std::next_permutation(in.begin(), in.end()));
    orders = next;
  }
  return !orders.empty();
}

// Sizes that add up to `sum`.
std::vector<Bytes> parts_of(oracle::Generator& random, Bytes sum) {
  std::vector<Bytes> parts;
  while (sum > 0) {
    parts.push_back(std::min(sum, random.pick(5, 45)));
    sum -= parts.back();
  }
  return parts;
}

// Every section is full; a plan need not exist.
Problem full_everywhere(oracle::Generator& random, Bytes capacity, int sections) {
  Problem problem;
  std::vector<BufferIdx> live;
  const auto begin = [&](Time time, Bytes sum) {
    for (const Bytes size : parts_of(random, sum)) {
      live.push_back(problem.count());
      problem.start.push_back(time);
      problem.end.push_back(sections);
      problem.size.push_back(size);
    }
  };
  begin(0, capacity);
  for (Time time = 1; time < sections; ++time) {
    Bytes freed = 0;
    std::vector<BufferIdx> kept;
    for (const BufferIdx b : live) {
      if (random.pick(0, 2) > 0) {
        kept.push_back(b);
        continue;
      }
      problem.end[b] = time;
      freed += problem.size[b];
    }
    live = kept;
    begin(time, freed);
  }
  return problem;
}

Problem rows(const Problem& problem, const std::vector<BufferIdx>& chosen) {
  Problem result;
  for (const BufferIdx b : chosen) {
    result.start.push_back(problem.start[b]);
    result.end.push_back(problem.end[b]);
    result.size.push_back(problem.size[b]);
  }
  return result;
}

Plan fit(const Problem& problem, Bytes capacity, bool tiling, std::int64_t nodes = kNoLimit) {
  Stopper stopper(std::numeric_limits<double>::infinity());
  ExactOptions options;
  options.tiling = tiling;
  return exact_fit(problem, sweep(problem), capacity, options, nodes, 1, 0, stopper);
}

}  // namespace

TEST(the_tree_stands_for_exactly_the_orders_that_are_left) {
  int refused = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    oracle::Generator random(seed);
    Order live;
    int next = 0;
    while (next < 6) live.push_back(next++);
    std::set<Order> orders;
    do orders.insert(live);
    while (std::next_permutation(live.begin(), live.end()));
    exact::PqTree tree(live);
    while (next < 24) {
      exact::PqTree::Exchange exchange;
      std::vector<char> marked(40, 0);
      Order kept;
      for (const int leaf : live) {
        const bool out = random.pick(0, 2) == 0;
        (out ? exchange.out : kept).push_back(leaf);
        marked[static_cast<std::size_t>(leaf)] = out ? 1 : 0;
      }
      if (exchange.out.empty()) continue;
      const Bytes most = std::max<Bytes>(1, 6 - static_cast<Bytes>(kept.size()));
      for (Bytes k = random.pick(1, most); k > 0; --k) exchange.in.push_back(next++);
      live = kept;
      live.insert(live.end(), exchange.in.begin(), exchange.in.end());
      orders = exchanged(orders, exchange.out, exchange.in);
      const bool possible = tree.apply(exchange, marked);
      CHECK_EQ(possible, !orders.empty());
      if (!possible) {
        ++refused;
        break;
      }
      CHECK(tree.check_invariants());
      CHECK(orders.count(tree.order()) == 1);
    }
  }
  CHECK(refused > 100);
}

TEST(all_ways_to_match_are_listed_when_the_lister_says_so) {
  const std::vector<Bytes> ending = {3, 5, 2}, beginning = {5, 1, 4};
  const exact::Matchings found = exact::matchings(ending, beginning);
  CHECK(found.all);
  CHECK_EQ(
      found.ways.size(),
      std::size_t{3});  // all at once, and 5 = 5 with 3 + 2 = 1 + 4 or 3 + 2 = 5 with 5 = 1 + 4
}

TEST(agrees_with_brute_force_where_every_section_is_full) {
  int infeasible = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    oracle::Generator random(seed);
    const Bytes capacity = random.pick(50, 150);
    const int sections = static_cast<int>(random.pick(3, 15));
    const Problem problem = full_everywhere(random, capacity, sections);
    if (most_live(problem, sections) > 6) continue;
    const Plan plan = fit(problem, capacity, true);
    CHECK_EQ(name(plan.status), std::string(tiles(problem, sections) ? "fits" : "infeasible"));
    if (plan.status == Status::kFits) {
      CHECK(oracle::valid(problem, plan.offsets));
      CHECK_EQ(plan.peak, capacity);
    } else {
      ++infeasible;
      CHECK(fit(rows(problem, plan.conflict), capacity, false, 5000).status != Status::kFits);
    }
    if (seed < 200) CHECK_EQ(name(fit(problem, capacity, false).status), name(plan.status));
  }
  CHECK(infeasible > 50);
}

TEST(agrees_with_the_search_where_only_some_sections_are_full) {
  int infeasible = 0;
  for (unsigned seed = 0; seed < check::rounds(500, 2000); ++seed) {
    oracle::Generator random(seed + 4000);
    const Bytes capacity = random.pick(80, 200);
    Problem problem = full_everywhere(random, capacity, static_cast<int>(random.pick(3, 9)));
    std::vector<BufferIdx> some;
    const Bytes dropped = random.pick(0, 3);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      if (b != 7 * dropped) some.push_back(b);
    }
    problem = rows(problem, some);
    const Plan with = fit(problem, capacity, true), without = fit(problem, capacity, false, 3000);
    if (without.status == Status::kUnknown) continue;
    CHECK_EQ(name(with.status), std::string(name(without.status)));
    if (with.status == Status::kFits) {
      CHECK(oracle::valid(problem, with.offsets));
      continue;
    }
    ++infeasible;
    const Plan again = fit(rows(problem, with.conflict), capacity, false, 20000);
    CHECK(again.status != Status::kFits);
  }
  CHECK(infeasible > 12);
}

TEST(a_full_problem_goes_on_where_its_budget_ended) {
  oracle::Generator random(5);
  const Problem problem = full_everywhere(random, 100, 20);
  const Sections sections = sweep(problem);
  const Items items = make_items(problem, sections, 100);
  for (const exact::Task& task : exact::make_tasks(items)) {
    if (!exact::Tiling::applies(task)) continue;
    exact::Tiling whole(task), slices(task);
    const exact::Verdict verdict = whole.run({}, kNoLimit, nullptr, nullptr);
    exact::Verdict last = exact::Verdict::kBudget;
    while (last == exact::Verdict::kBudget && !slices.exhausted()) {
      last = slices.run({}, 1, nullptr, nullptr);
    }
    CHECK(last == verdict);
    CHECK_EQ(slices.nodes(), whole.nodes());
    CHECK(slices.offsets() == whole.offsets());
  }
}

TEST_MAIN
