#include "c_api/door.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace memplan::c_api {

namespace {

// More fields than any version will have: what says so was never set.
constexpr std::size_t kMostOptions = 1024;

// The defaults, with the fields on top that the caller's version of the struct has. What a later
// version's caller has set must not be passed over.
memplan_options completed(const memplan_options* given) {
  memplan_options options;
  memplan_default_options(&options, sizeof options);
  if (given == nullptr) return options;
  const std::size_t size = given->struct_size;
  if (size < sizeof size || size > kMostOptions || size % alignof(memplan_options) != 0) {
    throw std::invalid_argument(
        "struct_size of the options is not set; call memplan_default_options() first");
  }
  for (std::size_t at = sizeof options; at < size; ++at) {
    if (reinterpret_cast<const char*>(given)[at] != 0) {
      throw std::invalid_argument("an option is set that this version of memplan does not know");
    }
  }
  std::memcpy(&options, given, std::min(size, sizeof options));
  return options;
}

SolveOptions converted(const memplan_options& given) {
  if (given.objective != MEMPLAN_FIT && given.objective != MEMPLAN_MIN_PEAK) {
    throw std::invalid_argument("objective must be MEMPLAN_FIT or MEMPLAN_MIN_PEAK");
  }
  if (given.threads < 1) throw std::invalid_argument("threads must be at least 1");
  SolveOptions options;
  options.solver = given.solver == nullptr ? "" : given.solver;
  options.objective = given.objective == MEMPLAN_FIT ? Objective::kFit : Objective::kMinPeak;
  if (given.seconds >= 0) options.budget.seconds = given.seconds;
  if (given.nodes >= 0) options.budget.nodes = given.nodes;
  options.threads = given.threads;
  options.seed = given.seed;
  if (given.interrupt != nullptr) {
    options.interrupt = [ask = given.interrupt, user_data = given.user_data] {
      return ask(user_data) != 0;
    };
  }
  return options;
}

}  // namespace

void say(const char* sentence, char* error, size_t error_size) {
  if (error == nullptr || error_size == 0) return;
  const size_t length = std::min(std::strlen(sentence), error_size - 1);
  std::memcpy(error, sentence, length);
  error[length] = '\0';
}

memplan_plan* solved(const memplan_problem* problem, const memplan_options* options, char* error,
                     std::size_t error_size, SolveBy* solve) {
  return guarded<memplan_plan*>(nullptr, error, error_size, [&] {
    return new memplan_plan{solve(problem->problem, converted(completed(options)))};
  });
}

}  // namespace memplan::c_api
