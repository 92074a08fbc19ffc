// Tests of the compat header as its callers use it, and of its tables and checks.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>

#include "check.h"
#include "memplan/minimalloc_compat.h"
#include "oracle.h"

using namespace minimalloc;

namespace {

Problem problem_of(const std::string& text, Capacity capacity) {
  StatusOr<Problem> problem = FromCsv(text);
  CHECK(problem.ok());
  problem->capacity = capacity;
  return *problem;
}

std::string refusal(const std::string& text) { return FromCsv(text).status().ToString(); }

// The same buffers for the core's oracle, and back.
Problem converted(const memplan::Problem& core) {
  Problem problem;
  for (memplan::BufferIdx b = 0; b < core.count(); ++b) {
    Buffer buffer;
    buffer.id = "b" + std::to_string(b);
    buffer.lifespan = {core.start[b], core.end[b]};
    buffer.size = core.size[b];
    buffer.alignment = core.alignment_of(b);
    if (core.pin_of(b) != memplan::kNoOffset) buffer.offset = core.pin_of(b);
    for (const memplan::Gap& gap : core.gaps) {
      if (gap.buffer != b) continue;
      Gap held{{gap.start, gap.end}, std::nullopt};
      if (gap.lower < gap.upper) held.window = Window{gap.lower, gap.upper};
      buffer.gaps.push_back(held);
    }
    problem.buffers.push_back(buffer);
  }
  return problem;
}

bool has_windows(const memplan::Problem& problem) {
  return std::any_of(problem.gaps.begin(), problem.gaps.end(),
                     [](const memplan::Gap& gap) { return gap.lower < gap.upper; });
}

}  // namespace

TEST(solves_as_callers_do) {
  Problem problem;
  problem.capacity = 12;
  problem.buffers.push_back({"b1", {0, 3}, 4, 1, {}, std::nullopt, std::nullopt});
  problem.buffers.push_back({"b2", {3, 9}, 4});
  problem.buffers.push_back({"b3", {0, 9}, 4, 4});
  problem.buffers.push_back({"b4", {9, 21}, 4});
  problem.buffers.push_back({"b5", {0, 21}, 4});
  SolverParams params;
  params.timeout = std::chrono::minutes(5);
  Solver solver(params);
  const StatusOr<Solution> solution = solver.Solve(problem);
  CHECK(solution.ok());
  CHECK_EQ(solution->height, 12);
  CHECK_EQ(solution->offsets.size(), std::size_t{5});
  CHECK_EQ(Validate(problem, *solution), kGood);
  problem.capacity = 11;
  const auto none = solver.Solve(problem);
  CHECK(!none.ok());
  CHECK(none.status().code() == StatusCode::kNotFound);
  CHECK_EQ(none.status().ToString(),
           std::string("NOT_FOUND: there is no solution within the capacity of 11"));
  const auto subset = solver.ComputeIrreducibleInfeasibleSubset(problem);
  CHECK_EQ(subset->size(), std::size_t{3});
}

TEST(a_proof_is_work) {
  // Bounds prove these without a node; callers ask whether there was a search.
  for (const char* text :
       {"id,lower,upper,size\na,0,2,3\n", "id,lower,upper,size\na,0,2,2\nb,0,2,2\n",
        "id,lower,upper,size,offset\na,0,2,1,9\n"}) {
    for (const bool minimize : {false, true}) {
      SolverParams params;
      params.minimize_capacity = minimize;
      Solver solver(params);
      CHECK(solver.Solve(problem_of(text, 2)).status().code() == StatusCode::kNotFound);
      CHECK(solver.get_backtracks() >= 1);
    }
  }
}

TEST(heuristics_compare_in_the_sequence_of_their_letters) {
  PreorderData a;
  a.area = 1;
  a.total = 3;
  a.width = 2;
  PreorderData b = a, c = a, d = a, e = a;
  b.total = 4;
  b.area = 0;
  c.width = 3;
  c.area = 0;
  d.area = 2;
  e.buffer_idx = 1;
  const PreorderingComparator before("TWxA");
  CHECK(before(b, a) && before(c, a) && before(d, a) && before(a, e));
  CHECK(!before(a, b) && !before(a, c) && !before(a, d) && !before(e, a) && !before(a, a));
  std::ostringstream out;
  out << before;
  CHECK_EQ(out.str(), std::string("preorder heuristic TWxA"));
  for (const char letter : std::string("CLOUZ")) {
    PreorderData more = a;
    (letter == 'C'   ? more.sections
     : letter == 'L' ? more.lower
     : letter == 'U' ? more.upper
                     : more.size) += letter == 'O' ? 0 : 1;
    if (letter == 'O') more.overlaps = 1;
    more.buffer_idx = 1;
    CHECK(PreorderingComparator(std::string(1, letter))(more, a));
    CHECK(!PreorderingComparator("A")(more, a));
  }
}

TEST(heights_are_those_of_brute_force) {
  int solved = 0;
  for (unsigned seed = 0; seed < check::rounds(300, 20000); ++seed) {
    oracle::Generator random(seed);
    const oracle::Features with = oracle::features(static_cast<int>(seed) % oracle::kFeatureSets);
    memplan::Problem core = random.problem(2 + seed % 5, 6, 5, with);
    core.reserved.clear();
    core.capacity.reset();
    core.conflicts = {};
    core.group.clear();
    core.lead.clear();
    Problem problem = converted(core);
    problem.capacity = 40;
    for (const bool published : {false, true}) {
      if (published && has_windows(core)) continue;
      SolverParams params;
      params.minimize_capacity = true;
      if (published) params.published = Published;
      const auto least = Solver(params).Solve(problem);
      const memplan::Bytes best = oracle::least_peak(core, 41);
      CHECK_EQ(least.ok(), best <= 40);
      if (!least.ok()) continue;
      ++solved;
      CHECK_EQ(Validate(problem, *least), kGood);
      CHECK(oracle::valid(core, least->offsets));
      if (!has_windows(core)) CHECK_EQ(least->height, best);
      problem.capacity = least->height;
      params.minimize_capacity = false;
      CHECK(Solver(params).Solve(problem).ok());
      problem.capacity = 40;
    }
  }
  CHECK(solved > 200);
}

TEST(buffers_with_windows_stay_in_one_order) {
  // A plan in which they cross needs 10 bytes, which is safe; this interface is asked for an order.
  Problem problem;
  problem.capacity = 100;
  problem.buffers.push_back(
      {"a", {0, 4}, 10, 1, {{{0, 2}, Window{0, 2}}, {{2, 4}, Window{8, 10}}}, 0, std::nullopt});
  problem.buffers.push_back({"b",
                             {0, 4},
                             6,
                             1,
                             {{{0, 2}, Window{4, 6}}, {{2, 4}, Window{0, 2}}},
                             std::nullopt,
                             std::nullopt});
  SolverParams params;
  params.minimize_capacity = true;
  const auto solution = Solver(params).Solve(problem);
  CHECK_EQ(solution->height, 16);
  // Where there is no room for an order, the one that crosses is better than none.
  problem.capacity = 10;
  CHECK_EQ(Solver(params).Solve(problem)->height, 10);
}

TEST(buffers_without_a_lifetime_have_a_place) {
  Problem problem = problem_of("id,lower,upper,size\na,0,5,4\nb,2,2,9\n", 9);
  const auto solution = Solver().Solve(problem);
  CHECK_EQ(solution->height, 9);
  CHECK_EQ(solution->offsets[1], 0);
  CHECK_EQ(Validate(problem, *solution), kGood);
  problem.capacity = 8;
  CHECK(Solver().Solve(problem).status().code() == StatusCode::kNotFound);
  CHECK(Solver().Solve(problem_of("id,lower,upper,size\na,5,2,4\n", 9)).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK_EQ(Solver().Solve(Problem{})->offsets.size(), std::size_t{0});
}

TEST(values_without_an_answer_are_sentences) {
  const auto code = [](const std::string& row, Capacity capacity = 9) {
    const std::string head = "id,lower,upper,size,alignment,offset,gaps\n";
    return Solver().Solve(problem_of(head + row + "\n", capacity)).status().code();
  };
  CHECK(code("a,0,2,3,4,4,") == StatusCode::kOk);
  CHECK(code("a,0,2,3,4,2,") == StatusCode::kNotFound);   // no multiple of the alignment
  CHECK(code("a,0,2,3,1,-1,") == StatusCode::kNotFound);  // below the arena
  CHECK(code("a,0,2,3,1,7,") == StatusCode::kNotFound);   // above the capacity
  CHECK(code("a,0,2,3,1,0,", 0) == StatusCode::kNotFound);
  CHECK(code("a,0,2,0,1,0,", 0) == StatusCode::kOk);
  CHECK(code("a,0,2,3,0,0,") == StatusCode::kInvalidArgument);
  CHECK(code("a,0,2,-3,1,0,") == StatusCode::kInvalidArgument);
  CHECK(code("a,0,2,3,1,0,0-1@2:9") == StatusCode::kInvalidArgument);
  CHECK(code("a,0,9223372036854775807,3,1,0,") == StatusCode::kInvalidArgument);
  CHECK(code("a,0,2,9223372036854775807,1,0,") == StatusCode::kInvalidArgument);
  CHECK(code("a,0,2,3,1,0,", 9223372036854775807) == StatusCode::kOk);
}

TEST(published_orders_are_read_as_there) {
  SolverParams params;
  params.published = Published;
  params.preordering_heuristics = {"TxW?", ""};
  const Problem problem = problem_of("id,lower,upper,size\na,0,5,4\nb,2,9,4\n", 8);
  CHECK_EQ(Solver(params).Solve(problem)->height, 8);
  params.preordering_heuristics.clear();
  CHECK(Solver(params).Solve(problem).status().code() == StatusCode::kInvalidArgument);
  params.preordering_heuristics = {"TWA"};
  params.hatless_pruning = params.canonical_only = params.check_dominance = false;
  CHECK_EQ(Solver(params).Solve(problem)->height, 8);
}

TEST(tables_are_read_in_all_dialects) {
  const Problem plain = problem_of("id,lower,upper,size\na,0,3,4\nb,-2,9,5\n", 0);
  CHECK_EQ(plain.buffers.size(), std::size_t{2});
  for (const char* text : {"buffer,start,end,size\na,0,2,4\nb,-2,8,5\n",
                           "size,begin,buffer_id,upper\n4,0,a,3\n5,-2,b,9",
                           "id,lower,upper,size,colour\r\na, 0,+3,4,red\r\nb,-2 ,9,5,\r\n",
                           "id,lower,upper,size\na,0,3,4\nb,-2,9,5\n\nnot read, whatever it is"}) {
    CHECK(problem_of(text, 0) == plain);
  }
  const Problem rich = problem_of(
      "id,lower,end,size,alignment,hint,gaps,offset\na,0,8,4,2,-1,1-2  4-5@1:3,8\na,0,8,4,1,3,,0\n",
      0);
  CHECK_EQ(rich.buffers[0].id, rich.buffers[1].id);
  CHECK(rich.buffers[0].gaps == (std::vector<Gap>{{{1, 3}, std::nullopt}, {{4, 6}, Window{1, 3}}}));
  CHECK_EQ(*rich.buffers[0].offset, 8);
  CHECK(!rich.buffers[0].hint && *rich.buffers[1].hint == 3);
  CHECK_EQ(ToCsv(rich),
           std::string("id,lower,upper,size,alignment,hint,gaps\na,0,9,4,2,-1,1-3 4-6@1:3\n"
                       "a,0,9,4,1,3,\n"));
  Problem stripped = rich;
  const auto solution = stripped.strip_solution();
  CHECK(!stripped.buffers[0].offset && !stripped.strip_solution().ok());
  CHECK_EQ(ToCsv(plain, &*solution, true),
           std::string("id,start,end,size,offset\na,0,2,4,8\nb,-2,8,5,0\n"));
  CHECK_EQ(problem_of("", 0).buffers.size(), std::size_t{0});
}

TEST(tables_that_cannot_be_read_are_sentences) {
  const std::string head = "id,lower,upper,size\n";
  CHECK_EQ(refusal("id,lower,size\n"),
           std::string("NOT_FOUND: line 1: there is no column \"upper\""));
  CHECK_EQ(refusal("id,lower,begin,upper,size\n"),
           std::string("INVALID_ARGUMENT: line 1: two columns mean the same as \"begin\""));
  CHECK_EQ(refusal("id,lower,upper,size,x,x\n").substr(0, 24),
           std::string("INVALID_ARGUMENT: line 1"));
  CHECK_EQ(refusal(head + "a,0,3,4\nb,1,2\n"),
           std::string("INVALID_ARGUMENT: line 3: there are 3 fields and 4 columns"));
  for (const char* row :
       {"a,0,3,4.5", "a,0,3,", "a,0,3,0x4", "a,0,3,+-4", "a,0,99999999999999999999,4"}) {
    CHECK(refusal(head + row).find("is not a whole number") != std::string::npos);
  }
  for (const char* gap : {"3", "3-", "3-4-5", "3-4@", "3-4@1", "3-4@1:x", "a-b"}) {
    CHECK(refusal("id,lower,upper,size,gaps\na,0,9,4," + std::string(gap)).find("is not a gap") !=
          std::string::npos);
  }
  const std::string last = "9223372036854775807";
  CHECK(!FromCsv("id,lower,end,size\na,0," + last + ",4").ok());
  CHECK(!FromCsv("id,lower,end,size,gaps\na,0,9,4,1-" + last).ok());
}

TEST(solutions_are_judged) {
  const Problem problem = problem_of(
      "id,lower,upper,size,alignment,gaps\na,0,9,4,2,3-5 6-8@0:2\nb,3,5,4,1,\nc,6,7,2,1,\n", 8);
  const auto judged = [&](std::vector<Offset> offsets, Offset height) {
    return static_cast<int>(Validate(problem, {std::move(offsets), height}));
  };
  CHECK_EQ(judged({0, 0, 2}, 4), static_cast<int>(kGood));
  CHECK_EQ(judged({0, 0}, 4), static_cast<int>(kBadSolution));
  CHECK_EQ(judged({0, 0, 1}, 4), static_cast<int>(kBadOverlap));
  CHECK_EQ(judged({1, 0, 4}, 6), static_cast<int>(kBadAlignment));
  CHECK_EQ(judged({-2, 0, 4}, 6), static_cast<int>(kBadOffset));
  CHECK_EQ(judged({6, 0, 4}, 10), static_cast<int>(kBadOffset));
  CHECK_EQ(judged({0, 0, 2}, 3), static_cast<int>(kBadHeight));
  CHECK_EQ(judged({0, 0, 2}, 5), static_cast<int>(kBadHeight));
  Problem pinned = problem;
  pinned.buffers[0].offset = 2;
  CHECK_EQ(Validate(pinned, {{0, 0, 2}, 4}), kBadFixed);
}

TEST(effective_sizes) {
  const Problem problem = problem_of(
      "id,lower,upper,size,gaps\na,0,9,4,3-5 6-8@1:3\nb,3,5,4,\nc,6,7,2,\nd,9,12,1,\n", 0);
  const std::vector<Buffer>& b = problem.buffers;
  CHECK(!b[0].effective_size(b[1]));  // in a gap
  CHECK_EQ(*b[0].effective_size(b[2]), 3);
  CHECK_EQ(*b[2].effective_size(b[0]), 1);
  CHECK(!b[0].effective_size(b[3]));
  CHECK_EQ(b[0].area(), 36);
}

TEST(another_thread_cancels) {
  // The order of 40 buffers that barely fit is not found in the time of a test.
  Problem problem;
  oracle::Generator random(5);
  problem = converted(oracle::cut_rectangle(random, 400, 4000, 4000));
  problem.capacity = 4000;
  SolverParams params;
  params.published = Published;
  params.canonical_only = params.section_inference = params.monotonic_floor = false;
  Solver solver(params);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      solver.Cancel();
      std::this_thread::yield();
    }
  });
  const auto solution = solver.Solve(problem);
  over = true;
  other.join();
  CHECK(solution.ok() || solution.status().code() == StatusCode::kDeadlineExceeded);
}

TEST_MAIN
