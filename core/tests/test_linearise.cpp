// Tests that relations of interval orders are recognised, and expressed by lifetimes.
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "check.h"
#include "memplan/linearise.h"
#include "oracle.h"
#include "solve/conflict_cliques.h"

using namespace memplan;

namespace {

using Pairs = std::vector<std::pair<BufferIdx, BufferIdx>>;

Problem timeless(BufferIdx count, const Pairs& pairs) {
  Problem problem;
  problem.size.assign(static_cast<std::size_t>(count), 1);
  for (BufferIdx b = 0; b < count; ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 1);
  }
  problem.conflicts = oracle::relation(count, pairs);
  return problem;
}

constexpr double kForever = std::numeric_limits<double>::infinity();

std::optional<Problem> linearised(const Problem& problem,
                                  std::int64_t most_pairs = kMostPairsToLinearise) {
  Stopper stopper(kForever);
  return memplan::linearised(problem, stopper, most_pairs);
}

// Whether two buffers of some size may not share an address.
bool related(const Problem& problem, BufferIdx a, BufferIdx b) {
  return oracle::conflict(problem, a, 0, b, 0);
}

bool same_pairs(const Problem& x, const Problem& y) {
  for (BufferIdx a = 0; a < x.count(); ++a) {
    for (BufferIdx b = 0; b < a; ++b) {
      if (related(x, a, b) != related(y, a, b)) return false;
    }
  }
  return true;
}

// By the definition of Gilmore and Hoffman: in some order of the maximal cliques, those of every
// vertex are consecutive. Sets are words of bits; a chordal graph has no more cliques than
// vertices.
bool is_interval_graph(const Problem& problem) {
  const int n = problem.count();
  std::vector<unsigned> cliques;
  for (unsigned set = (1U << n) - 1; set > 0; --set) {
    bool complete = true;
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < a; ++b) {
        const bool both = (set >> a & set >> b & 1U) != 0;
        complete = complete && (!both || related(problem, a, b));
      }
    }
    bool maximal = complete;  // the larger sets have larger numbers
    for (const unsigned clique : cliques) maximal = maximal && (set & ~clique) != 0;
    if (maximal) cliques.push_back(set);
  }
  if (cliques.size() > static_cast<std::size_t>(n)) return false;
  std::sort(cliques.begin(), cliques.end());
  do {
    bool consecutive = true;
    for (int v = 0; v < n; ++v) {
      int runs = 0;
      for (std::size_t i = 0; i < cliques.size(); ++i) {
        const bool in = (cliques[i] >> v & 1U) != 0;
        const bool was = i > 0 && (cliques[i - 1] >> v & 1U) != 0;
        runs += in && !was ? 1 : 0;
      }
      consecutive = consecutive && runs == 1;
    }
    if (consecutive) return true;
  } while (std::next_permutation(cliques.begin(), cliques.end()));
  return false;
}

// The problem with shorter lifetimes for some, and the pairs that they miss as conflicts.
Problem beyond_lifetimes(const Problem& problem, oracle::Generator& generator) {
  Problem result = problem;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (generator.pick(0, 1) == 0) continue;
    result.start[b] = generator.pick(problem.start[b], problem.end[b] - 1);
    result.end[b] = generator.pick(result.start[b] + 1, problem.end[b]);
  }
  Pairs missed;
  for (BufferIdx a = 0; a < problem.count(); ++a) {
    for (BufferIdx b = 0; b < a; ++b) {
      if (related(problem, a, b) && !related(result, a, b)) missed.emplace_back(a, b);
    }
  }
  result.conflicts = oracle::relation(problem.count(), missed);
  return result;
}

}  // namespace

// Tests every graph of up to six vertices against the definition: those of interval orders are
// linearised with the same pairs, the others are not.
TEST(all_small_graphs) {
  int interval_graphs = 0;
  for (BufferIdx n = 0; n <= 6; ++n) {
    Pairs all;
    for (BufferIdx a = 0; a < n; ++a) {
      for (BufferIdx b = 0; b < a; ++b) all.emplace_back(a, b);
    }
    for (unsigned set = 0; set < 1U << all.size(); ++set) {
      Pairs pairs;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if ((set >> i & 1U) != 0) pairs.push_back(all[i]);
      }
      const Problem problem = timeless(n, pairs);
      const std::optional<Problem> linear = linearised(problem);
      CHECK_EQ(linear.has_value(), is_interval_graph(problem));
      if (!linear) continue;
      ++interval_graphs;
      CHECK(memplan::check(*linear).empty());
      CHECK(linear->conflicts.empty());
      CHECK(same_pairs(problem, *linear));
    }
  }
  // So many with 0, 1, ... 6 vertices that have names.
  CHECK_EQ(interval_graphs, 1 + 1 + 2 + 8 + 61 + 822 + 17914);
}

// Tests that a relation that came from lifetimes is recognised, whatever share of its pairs the
// lifetimes still express.
TEST(interval_orders_are_recognised) {
  oracle::Generator generator(41);
  for (int round = 0; round < 300; ++round) {
    oracle::Features with = oracle::features(round % 16);
    with.gaps = false;
    const Problem problem =
        generator.problem(generator.pick(1, 60), generator.pick(2, 90), 9, with);
    const Problem asked = beyond_lifetimes(problem, generator);
    const std::optional<Problem> linear = linearised(asked);
    CHECK(linear.has_value());
    CHECK(memplan::check(*linear).empty());
    CHECK(same_pairs(problem, *linear));
    CHECK(linear->size == problem.size && linear->pin == problem.pin);
    for (BufferIdx b = 0; b < problem.count(); ++b) {
      CHECK(linear->start[b] >= 0 && linear->end[b] <= problem.count());
    }
  }
}

// Tests the two kinds of obstacle, alone and inside of a large interval order: a cycle without
// shortcut, and three buffers of which each pair has a way around the third.
TEST(others_are_not) {
  const Pairs square = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  const Pairs spider = {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {0, 5}, {5, 6}};
  const Pairs net = {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 4}, {2, 5}};
  for (const Pairs& pairs : {square, spider, net}) {
    CHECK(!linearised(timeless(7, pairs)));
    Pairs longer = pairs;
    for (BufferIdx b = 7; b < 200; ++b) longer.emplace_back(b, b - 1);
    CHECK(!linearised(timeless(200, longer)));
  }
}

// Tests that buffers without bytes conflict with none, whatever their lifetimes are.
TEST(empty_buffers) {
  Problem square = timeless(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  square.size[3] = 0;
  const std::optional<Problem> linear = linearised(square);
  CHECK(linear.has_value());
  CHECK(same_pairs(square, *linear));
}

// Tests that gaps and too many pairs are left alone.
TEST(left_alone) {
  Problem problem = timeless(4, {{0, 1}, {0, 2}, {2, 3}});
  CHECK(linearised(problem, 3).has_value());
  CHECK(!linearised(problem, 2));
  problem.gaps.push_back({1, 1, 2, 0, 0});
  CHECK(!linearised(problem));
}

// Tests that a stopper ends the work at whatever moment, with nothing or with the whole answer.
TEST(given_up) {
  Pairs star;
  for (BufferIdx b = 1; b < 500; ++b) star.emplace_back(0, b);
  const Problem problem = timeless(500, star);
  Stopper late(0);
  CHECK(!memplan::linearised(problem, late));
  Stopper interrupted(kForever, [] { return true; });
  CHECK(!memplan::linearised(problem, interrupted));
  CHECK(interrupted.interrupted());
  for (int moment = 0; moment < 50; ++moment) {
    Stopper stopper(1e-5 * moment);
    const std::optional<Problem> linear = memplan::linearised(problem, stopper);
    if (linear) CHECK(same_pairs(problem, *linear));
  }
}

// Tests that LexBFS takes every vertex once, and that a star, a path and a clique, with rows of
// very different lengths, are no work.
TEST(large_graphs) {
  constexpr BufferIdx kCount = 100'000;
  Pairs star, path;
  for (BufferIdx b = 1; b < kCount; ++b) {
    star.emplace_back(0, b);
    path.emplace_back(b - 1, b);
  }
  Pairs clique;
  for (BufferIdx b = 0; b < 1000; ++b) {
    for (BufferIdx a = 0; a < b; ++a) clique.emplace_back(a, b);
  }
  CHECK(linearised(timeless(kCount, star)).has_value());
  CHECK(linearised(timeless(kCount, path)).has_value());
  const std::optional<Problem> together = linearised(timeless(1000, clique));
  CHECK(together.has_value());
  CHECK_EQ(*std::max_element(together->end.begin(), together->end.end()), 1);
  Stopper stopper(kForever);
  std::vector<intervals::Vertex> order = intervals::lex_bfs(
      *intervals::conflict_graph(timeless(kCount, star), kCount, stopper), stopper);
  std::sort(order.begin(), order.end());
  for (BufferIdx b = 0; b < kCount; ++b) CHECK_EQ(order[b], b);
}

TEST_MAIN
