// Tests of the search under a policy of the caller: what it is told, that it is obeyed, and that
// no policy makes a wrong plan.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "every_solver.h"
#include "memplan/policy.h"
#include "memplan/solve.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr Bytes kHighest = 14;  // of what brute force looks at

// All that is supported: gaps in which a buffer holds nothing, no windows.
Problem random_problem(unsigned seed, Bytes most = 6) {
  oracle::Generator generator(seed);
  Problem problem = generator.problem(generator.pick(1, most), 6, 3,
                                      oracle::features(static_cast<int>(seed % 32)));
  for (Gap& gap : problem.gaps) gap.lower = gap.upper = 0;
  return problem;
}

// Takes many backtracks within its load.
Problem hard_problem(unsigned seed) {
  Problem problem = oracle::Generator(seed).problem(24, 12, 40, {});
  const std::vector<Bytes> all = loads(sweep(problem));
  problem.capacity = *std::max_element(all.begin(), all.end());
  return problem;
}

Plan run(const Problem& problem, std::shared_ptr<SearchPolicy> policy, std::int64_t nodes = 5000) {
  PublishedOptions how;
  how.telamalloc.policy = std::move(policy);
  SolveOptions options = options_for("telamalloc", how);
  options.objective = Objective::kFit;
  options.budget.nodes = nodes;
  return solve(problem, options);
}

// Checks each state against the one before, and leaves the choice to a function.
class Checked : public SearchPolicy {
 public:
  using Chooser = std::function<Choice(const SearchState&)>;
  using Leveller = std::function<std::int32_t(const SearchState&)>;

  Checked(const Problem& problem, Chooser chooser, Leveller leveller = nullptr)
      : problem_(problem), chooser_(std::move(chooser)), leveller_(std::move(leveller)) {}

  Choice choose(const SearchState& now) override {
    ++asked;
    CHECK(!now.candidates.empty());
    check(now);
    return chooser_(now);
  }
  std::int32_t go_back(const SearchState& now) override {
    ++backtracks;
    CHECK(!now.path.empty());
    check(now);
    if (!now.culprits.empty()) ++explained;
    return leveller_ ? leveller_(now) : kByRule;
  }

  int asked = 0;
  int backtracks = 0;
  int explained = 0;

 private:
  void check(const SearchState& now) const {
    std::vector<BufferIdx> seen;
    for (const Placement& p : now.path) {
      seen.push_back(p.buffer);
      CHECK(oracle::legal(problem_, p.buffer, p.offset));
      for (const ValidRange& range : now.candidates) {
        CHECK(!oracle::conflict(problem_, range.buffer, range.lower, p.buffer, p.offset));
      }
    }
    for (const ValidRange& range : now.candidates) {
      seen.push_back(range.buffer);
      CHECK(0 <= range.lower && range.lower <= range.upper);
      CHECK(range.upper + problem_.size[range.buffer] <= now.capacity);
    }
    for (const BufferIdx b : now.failed) seen.push_back(b);
    std::sort(seen.begin(), seen.end());  // each buffer is in one of the three, once
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    CHECK(std::is_sorted(now.culprits.begin(), now.culprits.end()));
    for (const std::int32_t level : now.culprits) {
      CHECK(0 <= level && level < static_cast<std::int32_t>(now.path.size()));
    }
    if (now.failed.empty()) CHECK(now.culprits.empty());
  }

  const Problem& problem_;
  Chooser chooser_;
  Leveller leveller_;
};

SearchPolicy::Choice first(const SearchState& now) { return {now.candidates.front().buffer}; }

SearchPolicy::Choice largest(const Problem& problem, const SearchState& now) {
  const auto at = std::max_element(now.candidates.begin(), now.candidates.end(),
                                   [&](const auto& a, const auto& b) {
                                     return problem.size[a.buffer] < problem.size[b.buffer];
                                   });
  return {at->buffer, at->lower};
}

std::string refusal(const Problem& problem, std::shared_ptr<SearchPolicy> policy) {
  try {
    run(problem, std::move(policy));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// Tests that plans under random policies are legal and within the capacity, and that no policy has
// the search call a problem infeasible that is not.
TEST(random_policies_make_no_wrong_plan) {
  int solved = 0, tight = 0, asked = 0;
  for (unsigned seed = 0; seed < check::rounds(600, 6000); ++seed) {
    Problem problem = random_problem(seed, 7);
    const Bytes least = oracle::least_peak(problem, kHighest);
    if (least == kHighest || least == 0) continue;
    problem.capacity = least;
    std::mt19937 random(seed);
    const auto pick = [&random](std::size_t count) { return random() % count; };
    const auto choose = [&](const SearchState& now) -> SearchPolicy::Choice {
      if (pick(20) == 0) return {};
      const ValidRange& range = now.candidates[pick(now.candidates.size())];
      for (int tries = 0; tries < 4; ++tries) {
        const Bytes width = range.upper - range.lower + 1;
        const Bytes at = range.lower + static_cast<Bytes>(pick(static_cast<std::size_t>(width)));
        if (oracle::legal(problem, range.buffer, at)) return {range.buffer, at};
      }
      return {range.buffer};
    };
    const auto level = [&](const SearchState& now) -> std::int32_t {
      if (pick(2) == 0) return SearchPolicy::kByRule;
      return static_cast<std::int32_t>(pick(now.path.size()));
    };
    const auto policy = std::make_shared<Checked>(problem, choose, level);
    const Plan plan = run(problem, policy);
    CHECK(plan.status != Status::kInfeasible);
    asked += policy->asked;
    ++tight;
    if (!plan.has_offsets()) continue;
    ++solved;
    CHECK(oracle::valid(problem, plan.offsets));
  }
  CHECK(tight > 200);
  CHECK(solved > tight / 2);
  CHECK(asked > tight);
}

// Tests that every call is a step or a backtrack, that the reasons of failures are told, and that
// the search ends by itself where the policy never gives up, with an answer that claims nothing.
TEST(a_policy_is_asked_at_every_step) {
  int explained = 0, exhausted = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Problem problem = hard_problem(seed);
    const auto policy = std::make_shared<Checked>(
        problem, [&problem](const SearchState& now) { return largest(problem, now); });
    const Plan plan = run(problem, policy, 3000);
    CHECK(plan.stats.nodes >= policy->asked);  // buffers that overlap no other are steps, too
    CHECK_EQ(plan.stats.major_backtracks, policy->backtracks);
    explained += policy->explained;
    CHECK(plan.has_offsets() || plan.status == Status::kUnknown);
    // With one candidate at a point, the tree is a path.
    const auto once = std::make_shared<Checked>(problem, [&problem](const SearchState& now) {
      return now.failed.empty() ? largest(problem, now) : SearchPolicy::Choice();
    });
    const Plan path = run(problem, once);
    if (path.has_offsets()) continue;
    ++exhausted;
    CHECK_EQ(name(path.status), std::string("unknown"));
    CHECK(path.stats.note.find("no proof") != std::string::npos);
    CHECK(path.stats.nodes <= problem.count() + 1);
  }
  CHECK(explained > 100);
  CHECK(exhausted > 5);
}

// Tests that the block and the offset that were chosen are those of the plan, and that the search
// goes back to the level that was asked for: all levels below are tried again.
TEST(a_policy_is_obeyed) {
  Problem problem;
  problem.start = {0, 0, 0};
  problem.end = {2, 2, 2};
  problem.size = {2, 3, 4};
  problem.capacity = 12;
  const auto on_top = std::make_shared<Checked>(problem, [](const SearchState& now) {
    const ValidRange& last = now.candidates.back();
    return SearchPolicy::Choice{last.buffer, last.upper};
  });
  CHECK(run(problem, on_top).offsets == std::vector<Bytes>({3, 5, 8}));

  std::vector<std::size_t> depths;
  const auto restarts = std::make_shared<Checked>(
      problem,
      [&depths](const SearchState& now) -> SearchPolicy::Choice {
        depths.push_back(now.path.size());
        if (now.path.size() == 2 && depths.size() < 6) return {};
        return first(now);
      },
      [](const SearchState&) { return 0; });
  CHECK(run(problem, restarts).has_offsets());
  CHECK(depths == std::vector<std::size_t>({0, 1, 2, 0, 1, 2}));
}

// Tests that a budget of steps and the caller's interrupt end the search under a policy.
TEST(limits_hold_under_a_policy) {
  const Problem problem = hard_problem(3);
  const auto policy = std::make_shared<Checked>(
      problem, [&problem](const SearchState& now) { return largest(problem, now); });
  const Plan plan = run(problem, policy, 10);
  CHECK_EQ(name(plan.status), std::string("unknown"));
  CHECK_EQ(plan.stats.nodes, 10);

  PublishedOptions how;
  how.telamalloc.policy = policy;
  SolveOptions options = options_for("telamalloc", how);
  options.objective = Objective::kFit;
  options.interrupt = [] { return true; };
  CHECK(solve(problem, options).stats.interrupted);
}

// Tests that each impossible answer is one sentence, and that what a policy throws comes out.
TEST(wrong_answers_are_refused) {
  Problem problem;
  problem.start = {0, 0, 1, 5};
  problem.end = {2, 2, 3, 6};
  problem.size = {4, 4, 4, 4};
  problem.alignment = {4, 1, 1, 1};
  problem.capacity = 16;
  const auto answers = [&problem](SearchPolicy::Choice choice) {
    return refusal(problem, std::make_shared<Checked>(
                                problem, [choice](const SearchState&) { return choice; }));
  };
  const std::string none = " is not among its candidates.";
  CHECK_EQ(answers({4}), "the policy chose row 4, which" + none);
  CHECK_EQ(answers({-2}), "the policy chose row -2, which" + none);
  CHECK_EQ(answers({3}), "the policy chose row 3, which" + none);  // it overlaps no other
  CHECK_EQ(answers({0}), "the policy chose row 0, which" + none);  // the second time
  CHECK_EQ(answers({1, 13}),
           std::string("the policy chose offset 13 for row 1, which must be from 0 to 12."));
  CHECK_EQ(answers({0, 2}), std::string("the policy chose offset 2 for row 0, which its alignment "
                                        "or a reserved range rules out."));
  const auto give_up = [](const SearchState& now) {
    return now.path.empty() ? first(now) : SearchPolicy::Choice();
  };
  const auto levels = [&](std::int32_t level) {
    return refusal(problem, std::make_shared<Checked>(
                                problem, give_up, [level](const SearchState&) { return level; }));
  };
  CHECK_EQ(levels(1), std::string("the policy went back to level 1, which must be from 0 to 0."));
  CHECK_EQ(levels(-2), std::string("the policy went back to level -2, which must be from 0 to 0."));

  const auto fails = [](const SearchState&) -> SearchPolicy::Choice {
    throw std::runtime_error("mine");
  };
  std::string caught;
  try {
    run(problem, std::make_shared<Checked>(problem, fails));
  } catch (const std::runtime_error& error) {
    caught = error.what();
  }
  CHECK_EQ(caught, std::string("mine"));
}

TEST_MAIN
