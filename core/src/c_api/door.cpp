#include "c_api/door.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace memplan::c_api {

namespace {

// No version will have more fields than this, so a greater `struct_size` was never set.
constexpr std::size_t kMostOptions = 1024;

// The defaults, with the fields on top that the caller's version of the struct has. Options of
// later versions that the caller has set must not be ignored. Returns what is wrong.
const char* complete(const memplan_options* given, memplan_options* options) {
  memplan_default_options(options, sizeof *options);
  if (given == nullptr) return "";
  const std::size_t size = given->struct_size;
  if (size < sizeof size || size > kMostOptions || size % alignof(memplan_options) != 0) {
    return "struct_size of the options is not set; call memplan_default_options() first";
  }
  for (std::size_t at = sizeof *options; at < size; ++at) {
    if (reinterpret_cast<const char*>(given)[at] == 0) continue;
    return "an option is set that this version of memplan does not know";
  }
  std::memcpy(options, given, std::min(size, sizeof *options));
  if (options->objective != MEMPLAN_FIT && options->objective != MEMPLAN_MIN_PEAK) {
    return "objective must be MEMPLAN_FIT or MEMPLAN_MIN_PEAK";
  }
  if (std::isnan(options->seconds)) return "seconds must be a number; a negative one is no limit";
  return options->threads < 1 ? "threads must be at least 1" : "";
}

}  // namespace

std::string convert(const memplan_options* options, SolveOptions* all) {
  memplan_options given;
  if (const char* fault = complete(options, &given); *fault != '\0') return fault;
  SolveOptions& chosen = *all;
  chosen.solver = given.solver == nullptr ? "" : given.solver;
  chosen.objective = given.objective == MEMPLAN_FIT ? Objective::kFit : Objective::kMinPeak;
  if (given.seconds >= 0) chosen.budget.seconds = given.seconds;
  if (given.nodes >= 0) chosen.budget.nodes = given.nodes;
  chosen.threads = given.threads;
  chosen.seed = given.seed;
  if (given.interrupt != nullptr) {
    chosen.interrupt = [ask = given.interrupt, user_data = given.user_data] {
      return ask(user_data) != 0;
    };
  }
  if (given.progress != nullptr) {
    chosen.progress = [tell = given.progress, user_data = given.user_data](const Progress& p) {
      const memplan_progress known = {p.seconds,     p.has_plan ? 1 : 0, p.peak,
                                      p.lower_bound, p.phase.c_str(),    p.nodes};
      tell(&known, user_data);
    };
  }
  return {};
}

void say(const char* sentence, char* error, size_t error_size) {
  if (error == nullptr || error_size == 0) return;
  const size_t length = std::min(std::strlen(sentence), error_size - 1);
  std::memcpy(error, sentence, length);
  error[length] = '\0';
}

memplan_plan* solved(const memplan_problem* problem, const memplan_options* options, char* error,
                     std::size_t error_size, SolveBy* solve) {
  std::unique_ptr<memplan_plan> plan;
  const bool done = guarded(error, error_size, [&]() -> std::string {
    if (problem == nullptr) return kNoProblem;
    SolveOptions chosen;
    if (std::string fault = convert(options, &chosen); !fault.empty()) return fault;
    plan = std::make_unique<memplan_plan>();
    return solve(problem->problem, chosen, &plan->plan);
  });
  return done ? plan.release() : nullptr;
}

}  // namespace memplan::c_api
