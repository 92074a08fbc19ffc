// The C door; test_c_api_header.c holds that header to C99.
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"
#include "memplan/c_api.h"
#include "memplan/solve.h"
#include "oracle.h"

extern "C" int c99_round_trip(void);  // of test_c_api_header.c

namespace {

// The five buffers of MiniMalloc, figure 2: they fit into 12 bytes and into no fewer.
const std::vector<int64_t> kStart = {0, 3, 0, 9, 0};
const std::vector<int64_t> kEnd = {3, 9, 9, 21, 21};
const std::vector<int64_t> kSize = {4, 4, 4, 4, 4};

struct Five {
  memplan_problem* problem =
      memplan_problem_create(5, kStart.data(), kEnd.data(), kSize.data(), nullptr, 0);
  Five() = default;
  Five(const Five&) = delete;
  Five& operator=(const Five&) = delete;
  ~Five() { memplan_problem_free(problem); }
};

memplan_options defaults() {
  memplan_options options;
  memplan_default_options(&options, sizeof options);
  return options;
}

// Every entry that solves, with the name that it answers under.
struct Entry {
  const char* name;
  memplan_plan* (*solve)(const memplan_problem*, const memplan_options*, char*, size_t);
};
constexpr Entry kAlone[] = {{"greedy", memplan_solve_greedy}, {"search", memplan_solve_search}};

memplan_problem* handed_over(const memplan::Problem& from) {
  memplan_problem* to = memplan_problem_create(from.size.size(), from.start.data(), from.end.data(),
                                               from.size.data(), nullptr, 0);
  if (!from.alignment.empty()) memplan_problem_set_alignment(to, from.alignment.data(), nullptr, 0);
  if (!from.pin.empty()) memplan_problem_set_pins(to, from.pin.data(), nullptr, 0);
  std::vector<int64_t> lower, upper;
  for (const memplan::Reserved& range : from.reserved) {
    lower.push_back(range.lower);
    upper.push_back(range.upper);
  }
  memplan_problem_set_reserved(to, lower.size(), lower.data(), upper.data(), nullptr, 0);
  return to;
}

memplan_problem* random_problem(unsigned seed) {
  oracle::Features with;
  with.alignment = seed % 2 != 0;
  with.reserved = seed % 4 >= 2;
  with.pins = seed % 8 >= 4;
  return handed_over(oracle::Generator(seed).problem(4 + static_cast<int>(seed % 9), 8, 9, with));
}

std::vector<int64_t> offsets_of(const memplan_plan* plan) {
  const int64_t* offsets = memplan_plan_offsets(plan);
  return {offsets, offsets + memplan_plan_count(plan)};
}

}  // namespace

TEST(smallest_peak_with_default_options) {
  const Five five;
  char error[80] = "";
  memplan_plan* plan = memplan_solve(five.problem, nullptr, error, sizeof error);
  CHECK_EQ(std::string(error), "");
  CHECK(plan != nullptr);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_OPTIMAL);
  CHECK_EQ(memplan_plan_peak(plan), 12);
  CHECK_EQ(memplan_plan_lower_bound(plan), 12);
  CHECK_EQ(memplan_plan_count(plan), size_t{5});
  const int64_t* offset = memplan_plan_offsets(plan);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool meet = kStart[i] < kEnd[j] && kStart[j] < kEnd[i];
      const bool apart = offset[i] + kSize[i] <= offset[j] || offset[j] + kSize[j] <= offset[i];
      CHECK(!meet || apart);
    }
  }
  CHECK_EQ(memplan_plan_interrupted(plan), 0);
  CHECK(std::strlen(memplan_plan_solver(plan)) > 0);
  memplan_plan_free(plan);
}

TEST(a_capacity_below_the_load_is_infeasible) {
  const Five five;
  memplan_problem_set_capacity(five.problem, 11, nullptr, 0);
  memplan_options options = defaults();
  options.objective = MEMPLAN_FIT;
  memplan_plan* plan = memplan_solve(five.problem, &options, nullptr, 0);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_INFEASIBLE);
  CHECK(memplan_plan_offsets(plan) == nullptr);
  CHECK_EQ(memplan_plan_count(plan), size_t{0});
  memplan_plan_free(plan);
}

TEST(a_capacity_below_a_pin_is_infeasible) {
  const Five five;
  const int64_t pin[] = {16, -1, -1, -1, -1};
  CHECK_EQ(memplan_problem_set_pins(five.problem, pin, nullptr, 0), 1);
  CHECK_EQ(memplan_problem_set_capacity(five.problem, 18, nullptr, 0), 1);
  CHECK_EQ(memplan_problem_check(five.problem, nullptr, 0), 1);
  memplan_plan* plan = memplan_solve(five.problem, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_INFEASIBLE);
  CHECK_EQ(memplan_plan_conflict_count(plan), size_t{1});
  CHECK_EQ(memplan_plan_conflict(plan)[0], 0);
  memplan_plan_free(plan);
}

TEST(every_column_reaches_the_solver) {
  const Five five;
  const int64_t pin[] = {16, -1, -1, -1, -1};
  const int64_t alignment[] = {8, 8, 8, 8, 8};
  const int64_t reserved_lower[] = {0};
  const int64_t reserved_upper[] = {8};
  CHECK_EQ(memplan_problem_set_pins(five.problem, pin, nullptr, 0), 1);
  CHECK_EQ(memplan_problem_set_alignment(five.problem, alignment, nullptr, 0), 1);
  CHECK_EQ(
      memplan_problem_set_reserved(five.problem, 1, reserved_lower, reserved_upper, nullptr, 0), 1);
  memplan_plan* plan = memplan_solve(five.problem, nullptr, nullptr, 0);
  const int64_t* offset = memplan_plan_offsets(plan);
  CHECK_EQ(offset[0], 16);
  for (size_t i = 0; i < 5; ++i) CHECK(offset[i] >= 8 && offset[i] % 8 == 0);
  CHECK_EQ(memplan_plan_peak(plan), 28);
  memplan_plan_free(plan);

  // Two buffers that live at once share their bytes where one of them holds nothing.
  const int64_t start[] = {0, 2};
  const int64_t end[] = {9, 5};
  const int64_t size[] = {6, 6};
  memplan_problem* two = memplan_problem_create(2, start, end, size, nullptr, 0);
  const int32_t buffer[] = {0};
  CHECK_EQ(
      memplan_problem_set_gaps(two, 1, buffer, &start[1], &end[1], nullptr, nullptr, nullptr, 0),
      1);
  plan = memplan_solve(two, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_peak(plan), 6);
  memplan_plan_free(plan);
  CHECK_EQ(
      memplan_problem_set_gaps(two, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0), 1);
  plan = memplan_solve(two, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_peak(plan), 12);
  memplan_plan_free(plan);
  memplan_problem_free(two);
}

TEST(errors_are_sentences_and_no_exceptions) {
  char error[200] = "";
  CHECK(memplan_problem_create(1, nullptr, nullptr, nullptr, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("NULL") != std::string::npos);

  const int64_t zero[] = {0};
  memplan_problem* empty_life = memplan_problem_create(1, zero, zero, zero, nullptr, 0);
  CHECK_EQ(memplan_problem_check(empty_life, error, sizeof error), 0);
  CHECK(std::string(error).find("buffer 0: end is 0") != std::string::npos);
  CHECK(memplan_solve(empty_life, nullptr, nullptr, 0) == nullptr);
  char small[9];
  CHECK(memplan_solve(empty_life, nullptr, small, sizeof small) == nullptr);
  CHECK_EQ(std::string(small), "buffer 0");
  memplan_problem_free(empty_life);

  const Five five;
  CHECK_EQ(memplan_problem_check(five.problem, error, sizeof error), 1);
  memplan_options options = defaults();
  options.solver = "oracle";
  CHECK(memplan_solve(five.problem, &options, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("oracle") != std::string::npos);
  options = defaults();
  options.objective = MEMPLAN_FIT;
  CHECK(memplan_solve(five.problem, &options, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("capacity") != std::string::npos);
  options = defaults();
  options.threads = 0;
  CHECK(memplan_solve(five.problem, &options, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("threads") != std::string::npos);
  options.struct_size = 0;
  CHECK(memplan_solve(five.problem, &options, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("struct_size") != std::string::npos);
}

TEST(a_solver_alone_refuses_what_the_door_by_name_refuses) {
  for (const Entry& entry : kAlone) {
    char error[200] = "";
    const int64_t zero[] = {0};
    memplan_problem* empty_life = memplan_problem_create(1, zero, zero, zero, nullptr, 0);
    CHECK(entry.solve(empty_life, nullptr, error, sizeof error) == nullptr);
    CHECK(std::string(error).find("buffer 0: end is 0") != std::string::npos);
    CHECK(entry.solve(empty_life, nullptr, nullptr, 0) == nullptr);
    memplan_problem_free(empty_life);

    const Five five;
    memplan_options options = defaults();
    options.objective = MEMPLAN_FIT;
    CHECK(entry.solve(five.problem, &options, error, sizeof error) == nullptr);
    CHECK(std::string(error).find("capacity") != std::string::npos);
    options = defaults();
    options.threads = 0;
    CHECK(entry.solve(five.problem, &options, error, sizeof error) == nullptr);
    CHECK(std::string(error).find("threads") != std::string::npos);
    options.struct_size = 0;
    CHECK(entry.solve(five.problem, &options, error, sizeof error) == nullptr);
    CHECK(std::string(error).find("struct_size") != std::string::npos);
  }
}

TEST(the_search_alone_refuses_gaps) {
  const Five five;
  const int32_t buffer[] = {4};
  CHECK_EQ(memplan_problem_set_gaps(five.problem, 1, buffer, &kStart[1], &kEnd[1], nullptr, nullptr,
                                    nullptr, 0),
           1);
  char error[200] = "";
  CHECK(memplan_solve_search(five.problem, nullptr, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("gaps") != std::string::npos);
  memplan_plan* plan = memplan_solve_greedy(five.problem, nullptr, error, sizeof error);
  CHECK(plan != nullptr);
  memplan_plan_free(plan);
}

TEST(a_solver_alone_does_not_read_the_name) {
  const Five five;
  for (const Entry& entry : kAlone) {
    memplan_options options = defaults();
    for (const char* name : {"oracle", static_cast<const char*>(nullptr)}) {
      options.solver = name;
      memplan_plan* plan = entry.solve(five.problem, &options, nullptr, 0);
      CHECK(plan != nullptr);
      CHECK_EQ(memplan_plan_peak(plan), 12);
      memplan_plan_free(plan);
    }
    CHECK(memplan_solve(five.problem, &options, nullptr, 0) == nullptr);
  }
}

TEST(greedy_alone_gives_the_plan_of_greedy_by_name) {
  memplan_options options = defaults();
  options.solver = "greedy";
  for (unsigned seed = 0; seed < 200; ++seed) {
    memplan_problem* problem = random_problem(seed);
    memplan_plan* named = memplan_solve(problem, &options, nullptr, 0);
    memplan_plan* alone = memplan_solve_greedy(problem, &options, nullptr, 0);
    CHECK_EQ(memplan_plan_status(alone), memplan_plan_status(named));
    CHECK_EQ(memplan_plan_lower_bound(alone), memplan_plan_lower_bound(named));
    CHECK_EQ(std::string(memplan_plan_note(alone)), memplan_plan_note(named));
    CHECK(offsets_of(alone) == offsets_of(named));
    memplan_plan_free(alone);
    memplan_plan_free(named);
    memplan_problem_free(problem);
  }
}

TEST(search_alone_finds_the_optimum_and_fits_nothing_below) {
  memplan_options options = defaults();
  options.solver = "exact";
  for (unsigned seed = 0; seed < 400; ++seed) {
    memplan_problem* problem = random_problem(seed);
    memplan_plan* named = memplan_solve(problem, &options, nullptr, 0);
    memplan_plan* alone = memplan_solve_search(problem, &options, nullptr, 0);
    CHECK_EQ(memplan_plan_status(named), MEMPLAN_OPTIMAL);
    CHECK_EQ(memplan_plan_status(alone), MEMPLAN_OPTIMAL);
    const int64_t least = memplan_plan_peak(named);
    CHECK_EQ(memplan_plan_peak(alone), least);
    memplan_plan_free(alone);
    memplan_plan_free(named);

    memplan_options fit = options;
    fit.objective = MEMPLAN_FIT;
    for (const int64_t capacity : {least, least - 1}) {
      if (capacity < 1) continue;
      memplan_problem_set_capacity(problem, capacity, nullptr, 0);
      named = memplan_solve(problem, &fit, nullptr, 0);
      alone = memplan_solve_search(problem, &fit, nullptr, 0);
      CHECK((named == nullptr) == (alone == nullptr));  // a pin above the capacity is refused
      if (alone != nullptr) {
        for (const memplan_plan* plan : {alone, named}) {
          const bool at_bound = memplan_plan_lower_bound(plan) == least;
          CHECK_EQ(memplan_plan_status(plan), capacity < least ? MEMPLAN_INFEASIBLE
                                              : at_bound       ? MEMPLAN_OPTIMAL
                                                               : MEMPLAN_FITS);
        }
      }
      memplan_plan_free(alone);
      memplan_plan_free(named);
    }
    memplan_problem_free(problem);
  }
}

TEST(options_of_an_older_and_a_newer_header) {
  const Five five;
  memplan_options older = defaults();
  older.solver = "greedy";
  older.struct_size = offsetof(memplan_options, objective);  // knew the solver, and no more
  older.threads = -7;                                        // not a field of that version
  memplan_plan* plan = memplan_solve(five.problem, &older, nullptr, 0);
  CHECK(plan != nullptr);
  CHECK_EQ(std::string(memplan_plan_solver(plan)), "greedy");
  memplan_plan_free(plan);

  struct {
    memplan_options known;
    int64_t later;
  } newer;
  newer.later = 77;
  memplan_default_options(&newer.known, sizeof newer);
  CHECK_EQ(newer.later, 0);
  plan = memplan_solve(five.problem, &newer.known, nullptr, 0);
  CHECK(plan != nullptr);
  memplan_plan_free(plan);
  newer.later = int64_t{1} << 56;  // in its last byte, wherever that is
  char error[200] = "";
  CHECK(memplan_solve(five.problem, &newer.known, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("does not know") != std::string::npos);
}

// Tests sizes that no version of the struct has: they are what was there before it was set up.
TEST(options_that_were_not_set_up) {
  const Five five;
  const size_t sizes[] = {0,
                          1,
                          sizeof(size_t) - 1,
                          sizeof(size_t) + 1,
                          sizeof(memplan_options) - 4,
                          sizeof(memplan_options) + 4,
                          size_t{1} << 20,
                          SIZE_MAX};
  for (const size_t size : sizes) {
    memplan_options options = defaults();
    options.struct_size = size;
    char error[200] = "";
    CHECK(memplan_solve(five.problem, &options, error, sizeof error) == nullptr);
    CHECK(std::string(error).find("struct_size") != std::string::npos);
  }
}

TEST(the_caller_may_interrupt) {
  const Five five;
  memplan_options options = defaults();
  int asked = 0;
  options.interrupt = [](void* user_data) {
    ++*static_cast<int*>(user_data);
    return 1;
  };
  options.user_data = &asked;
  // One above its bound, so that greedy alone does not settle it.
  const int64_t start[] = {4, 2, 3, 5, 0, 1, 1, 2};
  const int64_t end[] = {6, 6, 5, 7, 2, 4, 5, 3};
  const int64_t size[] = {2, 2, 1, 2, 3, 1, 1, 2};
  memplan_problem* jagged = memplan_problem_create(8, start, end, size, nullptr, 0);
  memplan_plan* plan = memplan_solve(jagged, &options, nullptr, 0);
  CHECK(plan != nullptr);
  CHECK(asked > 0);
  CHECK_EQ(memplan_plan_interrupted(plan), 1);
  memplan_plan_free(plan);
  memplan_problem_free(jagged);
}

TEST(nothing_to_place) {
  memplan_problem* none = memplan_problem_create(0, nullptr, nullptr, nullptr, nullptr, 0);
  memplan_plan* plan = memplan_solve(none, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_OPTIMAL);
  CHECK(memplan_plan_offsets(plan) != nullptr);
  CHECK_EQ(memplan_plan_peak(plan), 0);
  memplan_plan_free(plan);
  memplan_problem_free(none);
  memplan_plan_free(nullptr);
  memplan_problem_free(nullptr);
}

TEST(null_pointers_are_refused_with_a_sentence) {
  const Five five;
  char error[200] = "";
  const auto refused = [&error](int ok) {
    CHECK_EQ(ok, 0);
    CHECK(std::string(error).find("NULL") != std::string::npos);
    error[0] = '\0';
  };
  const size_t room = sizeof error;
  const int64_t column[] = {0, 0, 0, 0, 0};
  const int32_t rows[] = {0, 1, 2, 3, 4};
  refused(memplan_problem_check(nullptr, error, room));
  refused(memplan_problem_set_alignment(nullptr, column, error, room));
  refused(memplan_problem_set_pins(nullptr, column, error, room));
  refused(memplan_problem_set_hints(nullptr, column, error, room));
  refused(memplan_problem_set_capacity(nullptr, 5, error, room));
  refused(memplan_problem_set_groups(nullptr, rows, column, error, room));
  refused(memplan_problem_set_groups(five.problem, rows, nullptr, error, room));
  refused(memplan_problem_set_groups(five.problem, nullptr, column, error, room));
  refused(memplan_problem_set_conflicts(nullptr, 0, nullptr, nullptr, error, room));
  refused(memplan_problem_set_conflicts(five.problem, 1, rows, nullptr, error, room));
  refused(memplan_problem_set_conflicts(five.problem, 1, nullptr, rows, error, room));
  refused(memplan_problem_set_reserved(nullptr, 0, nullptr, nullptr, error, room));
  refused(memplan_problem_set_reserved(five.problem, 1, column, nullptr, error, room));
  refused(
      memplan_problem_set_gaps(nullptr, 0, rows, column, column, nullptr, nullptr, error, room));
  refused(memplan_problem_set_gaps(five.problem, 1, nullptr, column, column, nullptr, nullptr,
                                   error, room));
  refused(memplan_problem_set_gaps(five.problem, 1, rows, column, column, column, nullptr, error,
                                   room));
  for (const auto solve : {memplan_solve, memplan_solve_greedy, memplan_solve_search}) {
    refused(solve(nullptr, nullptr, error, room) != nullptr);
  }
  const auto write = [](const char*, size_t, void*) { return 1; };
  refused(memplan_solve_with_proof(nullptr, nullptr, write, nullptr, error, room) != nullptr);
  refused(memplan_solve_with_proof(five.problem, nullptr, nullptr, nullptr, error, room) !=
          nullptr);
  memplan_default_options(nullptr, sizeof(memplan_options));
  CHECK_EQ(memplan_problem_set_pins(nullptr, nullptr, nullptr, 0), 0);  // nor is a sentence needed

  // What was refused has changed nothing.
  memplan_plan* plan = memplan_solve(five.problem, nullptr, error, room);
  CHECK_EQ(memplan_plan_peak(plan), 12);
  memplan_plan_free(plan);
}

TEST(no_plan_at_all_has_neutral_answers) {
  CHECK_EQ(memplan_plan_status(nullptr), MEMPLAN_UNKNOWN);
  CHECK_EQ(memplan_plan_count(nullptr), size_t{0});
  CHECK(memplan_plan_offsets(nullptr) == nullptr);
  CHECK_EQ(memplan_plan_peak(nullptr), 0);
  CHECK_EQ(memplan_plan_lower_bound(nullptr), 0);
  CHECK_EQ(memplan_plan_conflict_count(nullptr), size_t{0});
  CHECK(memplan_plan_conflict(nullptr) == nullptr);
  CHECK_EQ(memplan_plan_nodes(nullptr), 0);
  CHECK_EQ(std::string(memplan_plan_solver(nullptr)), "");
  CHECK_EQ(std::string(memplan_plan_note(nullptr)), "");
  CHECK_EQ(memplan_plan_interrupted(nullptr), 0);
  CHECK_EQ(memplan_plan_proof_complete(nullptr), 0);
}

TEST(values_out_of_range_are_refused_with_a_sentence) {
  constexpr int64_t kMost = int64_t{1} << 62;
  const auto fault_of = [](int64_t start, int64_t end, int64_t size) {
    memplan_problem* problem = memplan_problem_create(1, &start, &end, &size, nullptr, 0);
    char error[300] = "";
    const int ok = memplan_problem_check(problem, error, sizeof error);
    CHECK_EQ(ok == 1, error[0] == '\0');
    memplan_plan* plan = memplan_solve(problem, nullptr, nullptr, 0);
    CHECK_EQ(plan != nullptr, ok == 1);
    memplan_plan_free(plan);
    memplan_problem_free(problem);
    return std::string(error);
  };
  CHECK_EQ(fault_of(-kMost, kMost, kMost), "");
  for (const int64_t time : {kMost + 1, INT64_MAX}) {
    CHECK(fault_of(0, time, 1).find("times must be between -2^62 and 2^62") != std::string::npos);
    CHECK(fault_of(-time, 1, 1).find("times must be between -2^62 and 2^62") != std::string::npos);
  }
  CHECK(fault_of(INT64_MIN, INT64_MAX, 1).find("buffer 0: ") == 0);
  CHECK(fault_of(0, 1, kMost + 1).find("size is") != std::string::npos);
  CHECK(fault_of(0, 1, -1).find("size is") != std::string::npos);

  const Five five;
  const auto refused = [&five](const memplan_options& options) {
    char error[200] = "";
    CHECK(memplan_solve(five.problem, &options, error, sizeof error) == nullptr);
    return std::string(error);
  };
  memplan_options options = defaults();
  options.seconds = std::nan("");
  CHECK(refused(options).find("seconds") != std::string::npos);
  for (const int32_t objective : {-1, 2, INT32_MAX, INT32_MIN}) {
    options = defaults();
    options.objective = objective;
    CHECK(refused(options).find("objective") != std::string::npos);
  }
  options = defaults();
  options.threads = INT32_MIN;
  CHECK(refused(options).find("threads") != std::string::npos);
  char error[200] = "";
  CHECK(memplan_problem_create(SIZE_MAX, kStart.data(), kEnd.data(), kSize.data(), error,
                               sizeof error) == nullptr);
  CHECK(std::string(error).find("too many buffers") != std::string::npos);
  const int32_t row[] = {0};
  CHECK_EQ(memplan_problem_set_gaps(five.problem, SIZE_MAX, row, kStart.data(), kEnd.data(),
                                    nullptr, nullptr, error, sizeof error),
           0);
  CHECK_EQ(memplan_problem_set_reserved(five.problem, SIZE_MAX, kStart.data(), kEnd.data(), error,
                                        sizeof error),
           0);
  CHECK_EQ(memplan_problem_set_conflicts(five.problem, SIZE_MAX, row, row, error, sizeof error), 0);
  CHECK(std::string(error).find("too many conflicts") != std::string::npos);
  CHECK_EQ(memplan_problem_set_capacity(five.problem, -7, error, sizeof error), 1);
  CHECK(refused(defaults()).find("capacity is -7") != std::string::npos);
  for (const int32_t status : {-1, 5, INT32_MAX}) {
    CHECK_EQ(std::string(memplan_status_name(status)), "unknown");
  }
}

TEST(conflicts_reach_the_solver) {
  // Three that never meet: each two of them may not share an address.
  const int64_t start[] = {0, 1, 2}, end[] = {1, 2, 3}, size[] = {4, 5, 6};
  memplan_problem* problem = memplan_problem_create(3, start, end, size, nullptr, 0);
  const auto peak = [problem] {
    memplan_plan* plan = memplan_solve(problem, nullptr, nullptr, 0);
    const int64_t found = memplan_plan_peak(plan);
    memplan_plan_free(plan);
    return found;
  };
  CHECK_EQ(peak(), 6);
  const int32_t first[] = {2, 0, 1, 0}, second[] = {0, 1, 2, 2};  // one pair twice
  CHECK_EQ(memplan_problem_set_conflicts(problem, 4, first, second, nullptr, 0), 1);
  CHECK_EQ(peak(), 15);

  char error[200] = "";
  const int32_t missing[] = {0, 3}, self[] = {1, 1};
  CHECK_EQ(memplan_problem_set_conflicts(problem, 2, missing, self, error, sizeof error), 0);
  CHECK_EQ(std::string(error), "conflict 1: there is no buffer 3");
  CHECK_EQ(memplan_problem_set_conflicts(problem, 2, self, missing + 1, error, sizeof error), 0);
  CHECK_EQ(memplan_problem_set_conflicts(problem, 1, self, self, error, sizeof error), 0);
  CHECK_EQ(std::string(error), "conflict 0: buffer 1 cannot conflict with itself");
  CHECK_EQ(peak(), 15);  // those that were there before
  CHECK_EQ(memplan_problem_set_conflicts(problem, 1, first, second, nullptr, 0), 1);
  CHECK_EQ(peak(), 10);
  CHECK_EQ(memplan_problem_set_conflicts(problem, 0, nullptr, nullptr, nullptr, 0), 1);
  CHECK_EQ(peak(), 6);
  memplan_problem_free(problem);
}

TEST(groups_and_hints_reach_the_solver) {
  // Two that never meet, one behind the other all the same.
  const int64_t start[] = {0, 1}, end[] = {1, 2}, size[] = {4, 6};
  memplan_problem* problem = memplan_problem_create(2, start, end, size, nullptr, 0);
  const int32_t group[] = {7, 7};
  const int64_t lead[] = {6, 0};
  CHECK_EQ(memplan_problem_set_groups(problem, group, lead, nullptr, 0), 1);
  memplan_plan* plan = memplan_solve(problem, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_peak(plan), 10);
  CHECK_EQ(memplan_plan_offsets(plan)[0] - memplan_plan_offsets(plan)[1], 6);
  memplan_plan_free(plan);
  char error[200] = "";
  const int64_t inside[] = {5, 0};
  CHECK_EQ(memplan_problem_set_groups(problem, group, inside, nullptr, 0), 1);
  CHECK_EQ(memplan_problem_check(problem, error, sizeof error), 0);
  CHECK(std::string(error).find("lead 5 is inside buffer 1") != std::string::npos);
  CHECK_EQ(memplan_problem_set_groups(problem, nullptr, nullptr, nullptr, 0), 1);

  const int64_t hint[] = {MEMPLAN_NONE, 0};
  CHECK_EQ(memplan_problem_set_hints(problem, hint, nullptr, 0), 1);
  plan = memplan_solve(problem, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_peak(plan), 6);
  CHECK_EQ(memplan_plan_offsets(plan)[1], 0);
  memplan_plan_free(plan);
  const int64_t below[] = {-2, 0};
  CHECK_EQ(memplan_problem_set_hints(problem, below, nullptr, 0), 1);
  CHECK_EQ(memplan_problem_check(problem, error, sizeof error), 0);
  CHECK(std::string(error).find("hint is -2") != std::string::npos);
  memplan_problem_free(problem);
}

TEST(the_caller_is_shown_progress) {
  struct Progress {
    int calls = 0;
    memplan_progress last{};
  } progress;
  memplan_options options = defaults();
  options.user_data = &progress;
  options.progress = [](const memplan_progress* known, void* user_data) {
    auto* into = static_cast<Progress*>(user_data);
    ++into->calls;
    CHECK(std::strlen(known->phase) > 0);
    CHECK(known->seconds >= 0);
    into->last = *known;
  };
  const Five five;
  memplan_plan* plan = memplan_solve(five.problem, &options, nullptr, 0);
  CHECK(progress.calls > 0);
  CHECK_EQ(progress.last.has_plan, 1);
  CHECK_EQ(progress.last.peak, 12);
  CHECK_EQ(progress.last.lower_bound, 12);
  CHECK(progress.last.nodes <= memplan_plan_nodes(plan));
  memplan_plan_free(plan);
}

TEST(an_infeasible_plan_names_who_is_to_blame) {
  const Five five;
  CHECK_EQ(memplan_problem_set_capacity(five.problem, 11, nullptr, 0), 1);
  memplan_plan* plan = memplan_solve(five.problem, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_INFEASIBLE);
  CHECK_EQ(memplan_plan_lower_bound(plan), 12);
  CHECK_EQ(memplan_plan_conflict_count(plan), size_t{3});
  int64_t bytes = 0;
  for (size_t i = 0; i < 3; ++i) bytes += kSize[memplan_plan_conflict(plan)[i]];
  CHECK_EQ(bytes, 12);
  CHECK(std::strlen(memplan_plan_note(plan)) > 0);
  memplan_plan_free(plan);
}

TEST(a_proof_is_handed_over_in_pieces) {
  // One above its load, so that a proof is more than a sum.
  const int64_t start[] = {4, 2, 3, 5, 0, 1, 1, 2}, end[] = {6, 6, 5, 7, 2, 4, 5, 3};
  const int64_t size[] = {2, 2, 1, 2, 3, 1, 1, 2};
  memplan_problem* problem = memplan_problem_create(8, start, end, size, nullptr, 0);
  struct Text {
    std::string all;
    size_t most = SIZE_MAX;
  } text;
  const auto write = [](const char* piece, size_t length, void* user_data) {
    auto* into = static_cast<Text*>(user_data);
    into->all.append(piece, length);
    return into->all.size() < into->most ? 1 : 0;
  };
  char error[200] = "";
  memplan_plan* plan =
      memplan_solve_with_proof(problem, nullptr, write, &text, error, sizeof error);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_OPTIMAL);
  CHECK_EQ(memplan_plan_proof_complete(plan), 1);
  memplan_plan_free(plan);
  CHECK_EQ(text.all.compare(text.all.size() - 9, 9, "\nrefuted\n"), 0);

  memplan::Problem same;
  same.start.assign(start, start + 8);
  same.end.assign(end, end + 8);
  same.size.assign(size, size + 8);
  std::ostringstream out;
  memplan::SolveOptions solving;
  solving.proof = &out;
  memplan::solve(same, solving);
  CHECK_EQ(text.all, out.str());

  text.all.clear();
  text.most = 1;
  plan = memplan_solve_with_proof(problem, nullptr, write, &text, error, sizeof error);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_OPTIMAL);
  CHECK_EQ(memplan_plan_proof_complete(plan), 0);
  memplan_plan_free(plan);

  memplan_options options = defaults();
  options.solver = "greedy";
  CHECK(memplan_solve_with_proof(problem, &options, write, &text, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("choose one of auto, exact, prover.") != std::string::npos);
  const int32_t row[] = {1};
  const int64_t lower[] = {0}, upper[] = {1};
  CHECK_EQ(memplan_problem_set_gaps(problem, 1, row, &start[1], &end[1], lower, upper, error,
                                    sizeof error),
           1);
  CHECK(memplan_solve_with_proof(problem, nullptr, write, &text, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("windows") != std::string::npos);
  memplan_problem_free(problem);
}

TEST(the_best_order_by_c) {
  // Two branches of a large and a small storage: one after the other, instead of side by side.
  const int32_t from[] = {0, 1, 2, 3}, to[] = {2, 3, 4, 4};
  const int64_t size[] = {10, 10, 1, 1, 1}, user_begin[] = {0, 2, 4, 6, 8, 9};
  const int32_t user[] = {0, 2, 1, 3, 2, 4, 3, 4, 4};
  memplan_program program = {};
  program.operators = 5;
  program.arcs = 4;
  program.arc_from = from;
  program.arc_to = to;
  program.storages = 5;
  program.size = size;
  program.user_begin = user_begin;
  program.user = user;
  char error[200] = "";
  memplan_order* order = memplan_best_order(&program, nullptr, error, sizeof error);
  CHECK_EQ(memplan_order_status(order), MEMPLAN_OPTIMAL);
  CHECK_EQ(memplan_order_peak(order), 12);
  CHECK_EQ(memplan_order_lower_bound(order), 12);
  CHECK_EQ(memplan_order_count(order), 5u);
  CHECK(memplan_order_operators(order)[1] != 1 || memplan_order_operators(order)[0] != 0);
  CHECK_EQ(memplan_order_interrupted(order), 0);
  memplan_order_free(order);

  const int32_t backwards[] = {0, 1, 2, 2};
  program.arc_to = backwards;
  CHECK(memplan_best_order(&program, nullptr, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("an arc must lead") != std::string::npos);
  program.arc_to = nullptr;
  CHECK(memplan_best_order(&program, nullptr, error, sizeof error) == nullptr);
  CHECK(std::string(error).find("NULL") != std::string::npos);
  CHECK(memplan_best_order(nullptr, nullptr, error, sizeof error) == nullptr);
  CHECK_EQ(memplan_order_status(nullptr), MEMPLAN_UNKNOWN);
  memplan_order_free(nullptr);

  const memplan_program nothing = {};
  order = memplan_best_order(&nothing, nullptr, error, sizeof error);
  CHECK_EQ(memplan_order_status(order), MEMPLAN_OPTIMAL);
  CHECK_EQ(memplan_order_count(order), 0u);
  memplan_order_free(order);
}

TEST(names_of_statuses) {
  CHECK_EQ(std::string(memplan_status_name(MEMPLAN_OPTIMAL)), "optimal");
  CHECK_EQ(std::string(memplan_status_name(MEMPLAN_FITS)), "fits");
  CHECK_EQ(std::string(memplan_status_name(MEMPLAN_UNKNOWN)), "unknown");
}

TEST(the_header_serves_c99) { CHECK_EQ(c99_round_trip(), 12); }

TEST_MAIN
