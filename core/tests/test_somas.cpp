// Tests of the algorithms of SOMAS, section 4 and appendices D and E.
#include <limits>
#include <stdexcept>
#include <string>

#include "check.h"
#include "memplan/somas.h"
#include "oracle.h"
#include "published/somas/blocks.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr double kForever = std::numeric_limits<double>::infinity();

constexpr const char* kAlgorithms[] = {"single", "many"};

Plan run(const Problem& problem, const SomasOptions& options, std::int64_t nodes = kNoLimit) {
  Stopper stopper(kForever);
  return somas(problem, sweep(problem), options, nodes, stopper);
}

std::vector<BufferIdx> heads(const Problem& problem, const std::string& sort) {
  Stopper stopper(kForever);
  std::vector<BufferIdx> result;
  for (const objects::Block& block : objects::sorted(problem, sweep(problem), sort, stopper)) {
    result.push_back(block.tensors[0]);
  }
  return result;
}

// A relation without any time.
Problem timeless(const std::vector<Bytes>& sizes,
                 const std::vector<std::pair<BufferIdx, BufferIdx>>& unsafe) {
  Problem problem;
  problem.size = sizes;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    problem.start.push_back(b);
    problem.end.push_back(b + 1);
  }
  problem.conflicts = oracle::relation(problem.count(), unsafe);
  return problem;
}

// Appendix E, figure 7: A to E, with lifetimes that include their last step.
Problem toy() {
  Problem problem;
  problem.start = {0, 3, 1, 4, 2};
  problem.end = {2, 5, 3, 6, 5};
  problem.size = {1024, 768, 640, 512, 256};
  return problem;
}

std::string error_of(const Problem& problem, const SomasOptions& options) {
  try {
    run(problem, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// Tests the toy of figures 7 to 9: 1920 in one object, 1664 in many, each tensor where it is drawn.
TEST(toy_of_the_source) {
  const Plan single = run(toy(), {"single"});
  CHECK_EQ(single.peak, 1920);
  CHECK(single.offsets == (std::vector<Bytes>{0, 0, 1024, 768, 1664}));
  const Plan many = run(toy(), {"many"});
  CHECK_EQ(many.peak, 1664);
  CHECK(many.offsets == (std::vector<Bytes>{0, 0, 1024, 1024, 768}));
}

// Tests the same toy as a relation without time, written as the unsafe pairs that the source lists.
TEST(toy_as_a_relation) {
  const Problem problem = timeless(toy().size, {{0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 4}});
  for (const char* objects : kAlgorithms) {
    CHECK(run(problem, {objects}).offsets == run(toy(), {objects}).offsets);
  }
}

// Tests the example of figure 6: block DEF beside ABC, with only E and B unsafe. The head may not
// begin in [0, 7), and goes to 7.
TEST(avoid_of_a_list) {
  Problem problem = timeless({10, 5, 3, 8, 6, 6}, {{1, 4}});
  problem.group = {0, 0, 0, 1, 1, 1};
  problem.lead = {0, 10, 15, 0, 8, 14};
  const Plan plan = run(problem, {"single", "source", "first"});
  CHECK(plan.offsets == (std::vector<Bytes>{0, 10, 15, 7, 15, 21}));
}

// Tests Algorithm 9: what overlaps or touches is one.
TEST(merge_of_intervals) {
  const std::vector<Interval> merged =
      objects::merge({{8, 9}, {0, 3}, {5, 7}, {2, 4}, {4, 5}, {6, 7}});
  CHECK_EQ(merged.size(), 2U);
  CHECK(merged[0].lower == 0 && merged[0].upper == 7);
  CHECK(merged[1].lower == 8 && merged[1].upper == 9);
  CHECK(objects::merge({}).empty());
}

// Tests Algorithms 10 to 12: the lowest gap or the smallest, and none where the object is too
// short.
TEST(fit_into_gaps) {
  const std::vector<Interval> avoid = {{4, 6}, {8, 9}, {11, 13}};  // gaps of 4, 2, 2 and 7
  const objects::Stretch object{0, 20};
  CHECK_EQ(objects::fit(2, 2, avoid, object, objects::Fitter::kFirst), 0);
  CHECK_EQ(objects::fit(2, 2, avoid, object, objects::Fitter::kBest),
           6);  // of equal ones, the lower
  CHECK_EQ(objects::fit(5, 5, avoid, object, objects::Fitter::kFirst), 13);
  CHECK_EQ(objects::fit(7, 2, avoid, object, objects::Fitter::kBest), 6);  // the head is in the gap
  CHECK_EQ(objects::fit(8, 8, avoid, object, objects::Fitter::kFirst), kNoOffset);
  CHECK_EQ(objects::fit(16, 2, avoid, object, objects::Fitter::kBest), 0);  // the rest hangs over
  CHECK_EQ(objects::fit(3, 3, {}, {7, 10}, objects::Fitter::kBest), 7);
}

// Tests the four orders on the toy, and that lists go as one.
TEST(orders_of_the_source) {
  using Rows = std::vector<BufferIdx>;
  Problem problem = toy();
  CHECK(heads(problem, "size") == (Rows{0, 1, 2, 3, 4}));
  CHECK(heads(problem, "source") == (Rows{0, 2, 4, 1, 3}));
  // Loads at their sources: A 1024, C 1664, E 896, B 1024, D 1536.
  CHECK(heads(problem, "breadth") == (Rows{2, 3, 0, 1, 4}));
  CHECK(heads(problem, "unsafe") == (Rows{4, 1, 2, 3, 0}));  // E 3; B, C, D 2; A 1
  problem.group = {kNoGroup, kNoGroup, kNoGroup, 0, 0};
  problem.lead = {0, 0, 0, 256, 0};
  CHECK(heads(problem, "size") == (Rows{0, 1, 4, 2}));  // E and D together have 768
  CHECK(heads(problem, "source") == (Rows{0, 2, 4, 1}));
  CHECK(heads(problem, "unsafe") == (Rows{4, 1, 2, 0}));
}

// Tests that every order and fit of both algorithms gives valid plans, with gaps, with conflicts
// beyond lifetimes and with groups; and that none is better than what trying every offset finds.
TEST(plans_are_valid) {
  oracle::Generator generator(21);
  int best = 0;
  for (int round = 0; round < 200; ++round) {
    Problem problem = generator.problem(generator.pick(1, 6), 6, 3, {});
    if (round % 4 == 0) problem.gaps.push_back({0, problem.start[0], problem.start[0] + 1, 0, 0});
    if (round % 2 == 0) generator.relate(&problem, 2);
    if (round % 3 != 0) generator.gather(&problem);
    const Bytes least = oracle::least_peak(problem, run(problem, {}).peak);
    for (const char* objects : kAlgorithms) {
      for (const char* sort : {"size", "breadth", "source", "unsafe"}) {
        for (const char* fit : {"first", "best"}) {
          const Plan plan = run(problem, {objects, sort, fit});
          CHECK(plan.has_offsets());
          CHECK(oracle::valid(problem, plan.offsets));
          CHECK_EQ(plan.peak, oracle::peak(problem, plan.offsets));
          CHECK(plan.peak >= least);
          best += plan.peak == least ? 1 : 0;
        }
      }
    }
  }
  CHECK(best > 200 * 8);
}

// Tests that no plan ends above a capacity, nor is there one for fewer nodes than tensors.
TEST(limits) {
  Problem problem = toy();
  problem.capacity = 1700;
  CHECK(!run(problem, {"single"}).has_offsets());
  CHECK_EQ(run(problem, {"many"}).peak, 1664);
  for (const char* objects : kAlgorithms) {
    CHECK(!run(toy(), {objects}, 4).has_offsets());
    CHECK_EQ(run(toy(), {objects}, 5).stats.nodes, 5);
  }
}

// Tests that what the source does not speak of is refused by name.
TEST(refusals) {
  for (const char* objects : kAlgorithms) {
    Problem problem = toy();
    CHECK(error_of(problem, {"few"}).find("'few'") != std::string::npos);
    CHECK(error_of(problem, {objects}).empty());
    CHECK(error_of(problem, {objects, "width"}).find("'width'") != std::string::npos);
    CHECK(error_of(problem, {objects, "size", "worst"}).find("'worst'") != std::string::npos);
    problem.alignment = {1, 1, 2, 1, 1};
    CHECK(error_of(problem, {objects}).find("alignment") != std::string::npos);
    problem = toy();
    problem.pin = {kNoOffset, 8, kNoOffset, kNoOffset, kNoOffset};
    CHECK(error_of(problem, {objects}).find("pins") != std::string::npos);
    problem = toy();
    problem.reserved = {{3, 4}};
    CHECK(error_of(problem, {objects}).find("reserved") != std::string::npos);
    problem = toy();
    problem.gaps = {{1, 3, 4, 0, 1}};
    CHECK(error_of(problem, {objects}).find("windows") != std::string::npos);
  }
}

TEST_MAIN
