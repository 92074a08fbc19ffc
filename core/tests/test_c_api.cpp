// The C door, through its header alone; test_c_api_header.c holds that header to C99.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "memplan/c_api.h"
#include "oracle.h"

extern "C" int c99_round_trip(void);  // of test_c_api_header.c

namespace {

// The five buffers of source 000, figure 2: they fit into 12 bytes and into no fewer.
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
  if (!from.alignment.empty()) memplan_problem_set_alignment(to, from.alignment.data());
  if (!from.pin.empty()) memplan_problem_set_pins(to, from.pin.data());
  std::vector<int64_t> lower, upper;
  for (const memplan::Reserved& range : from.reserved) {
    lower.push_back(range.lower);
    upper.push_back(range.upper);
  }
  memplan_problem_set_reserved(to, lower.size(), lower.data(), upper.data());
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
  memplan_problem_set_capacity(five.problem, 11);
  memplan_options options = defaults();
  options.objective = MEMPLAN_FIT;
  memplan_plan* plan = memplan_solve(five.problem, &options, nullptr, 0);
  CHECK_EQ(memplan_plan_status(plan), MEMPLAN_INFEASIBLE);
  CHECK(memplan_plan_offsets(plan) == nullptr);
  CHECK_EQ(memplan_plan_count(plan), size_t{0});
  memplan_plan_free(plan);
}

TEST(every_column_reaches_the_solver) {
  const Five five;
  const int64_t pin[] = {16, -1, -1, -1, -1};
  const int64_t alignment[] = {8, 8, 8, 8, 8};
  const int64_t reserved_lower[] = {0};
  const int64_t reserved_upper[] = {8};
  CHECK_EQ(memplan_problem_set_pins(five.problem, pin), 1);
  CHECK_EQ(memplan_problem_set_alignment(five.problem, alignment), 1);
  CHECK_EQ(memplan_problem_set_reserved(five.problem, 1, reserved_lower, reserved_upper), 1);
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
  CHECK_EQ(memplan_problem_set_gaps(two, 1, buffer, &start[1], &end[1], nullptr, nullptr), 1);
  plan = memplan_solve(two, nullptr, nullptr, 0);
  CHECK_EQ(memplan_plan_peak(plan), 6);
  memplan_plan_free(plan);
  CHECK_EQ(memplan_problem_set_gaps(two, 0, nullptr, nullptr, nullptr, nullptr, nullptr), 1);
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
  CHECK_EQ(
      memplan_problem_set_gaps(five.problem, 1, buffer, &kStart[1], &kEnd[1], nullptr, nullptr), 1);
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
      memplan_problem_set_capacity(problem, capacity);
      named = memplan_solve(problem, &fit, nullptr, 0);
      alone = memplan_solve_search(problem, &fit, nullptr, 0);
      CHECK((named == nullptr) == (alone == nullptr));  // a pin above the capacity is refused
      if (alone != nullptr) {
        CHECK_EQ(memplan_plan_status(alone),
                 capacity == least ? MEMPLAN_OPTIMAL : MEMPLAN_INFEASIBLE);
        CHECK_EQ(memplan_plan_status(named), memplan_plan_status(alone));
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

TEST(names_of_statuses) {
  CHECK_EQ(std::string(memplan_status_name(MEMPLAN_OPTIMAL)), "optimal");
  CHECK_EQ(std::string(memplan_status_name(MEMPLAN_UNKNOWN)), "unknown");
}

TEST(the_header_serves_c99) { CHECK_EQ(c99_round_trip(), 12); }

TEST_MAIN
