#include "memplan/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c_api/door.h"

namespace {

using memplan::Bytes;
using memplan::c_api::guarded;

using memplan::c_api::kMostRows;
using memplan::c_api::kNoProblem;
using memplan::c_api::replace;

std::vector<Bytes> copied(const int64_t* column, size_t count) {
  if (column == nullptr) return {};
  return std::vector<Bytes>(column, column + count);
}

int set_column(memplan_problem* problem, std::vector<Bytes> memplan::Problem::* member,
               const int64_t* column, char* error, size_t error_size) {
  return replace(problem, member, error, error_size,
                 [column](size_t count, std::vector<Bytes>* made) -> std::string {
                   *made = copied(column, count);
                   return {};
                 });
}

}  // namespace

// ---- problems

memplan_problem* memplan_problem_create(size_t count, const int64_t* start, const int64_t* end,
                                        const int64_t* size, char* error, size_t error_size) {
  std::unique_ptr<memplan_problem> made;
  const bool done = guarded(error, error_size, [&]() -> std::string {
    if (count > 0 && (start == nullptr || end == nullptr || size == nullptr)) {
      return "start, end and size must not be NULL";
    }
    if (count > kMostRows) return "there are too many buffers";
    made = std::make_unique<memplan_problem>();
    made->problem.start = copied(start, count);
    made->problem.end = copied(end, count);
    made->problem.size = copied(size, count);
    return {};
  });
  return done ? made.release() : nullptr;
}

void memplan_problem_free(memplan_problem* problem) { delete problem; }

int memplan_problem_set_alignment(memplan_problem* problem, const int64_t* alignment, char* error,
                                  size_t error_size) {
  return set_column(problem, &memplan::Problem::alignment, alignment, error, error_size);
}

int memplan_problem_set_pins(memplan_problem* problem, const int64_t* pin, char* error,
                             size_t error_size) {
  return set_column(problem, &memplan::Problem::pin, pin, error, error_size);
}

int memplan_problem_set_hints(memplan_problem* problem, const int64_t* hint, char* error,
                              size_t error_size) {
  return set_column(problem, &memplan::Problem::hint, hint, error, error_size);
}

int memplan_problem_set_gaps(memplan_problem* problem, size_t count, const int32_t* buffer,
                             const int64_t* start, const int64_t* end, const int64_t* lower,
                             const int64_t* upper, char* error, size_t error_size) {
  const auto make = [&](size_t, std::vector<memplan::Gap>* gaps) -> std::string {
    if (count > 0 && (buffer == nullptr || start == nullptr || end == nullptr)) {
      return "buffer, start and end of gaps must not be NULL";
    }
    if ((lower == nullptr) != (upper == nullptr)) {
      return "lower and upper of gaps must both be given, or both be NULL";
    }
    if (count > kMostRows) return "there are too many gaps";
    for (size_t i = 0; i < count; ++i) {
      gaps->push_back({buffer[i], start[i], end[i], lower == nullptr ? 0 : lower[i],
                       upper == nullptr ? 0 : upper[i]});
    }
    return {};
  };
  return replace(problem, &memplan::Problem::gaps, error, error_size, make);
}

int memplan_problem_set_reserved(memplan_problem* problem, size_t count, const int64_t* lower,
                                 const int64_t* upper, char* error, size_t error_size) {
  const auto make = [&](size_t, std::vector<memplan::Reserved>* reserved) -> std::string {
    if (count > 0 && (lower == nullptr || upper == nullptr)) {
      return "lower and upper of reserved ranges must not be NULL";
    }
    if (count > kMostRows) return "there are too many reserved ranges";
    for (size_t i = 0; i < count; ++i) reserved->push_back({lower[i], upper[i]});
    return {};
  };
  return replace(problem, &memplan::Problem::reserved, error, error_size, make);
}

int memplan_problem_set_capacity(memplan_problem* problem, int64_t capacity, char* error,
                                 size_t error_size) {
  return replace(problem, &memplan::Problem::capacity, error, error_size,
                 [capacity](size_t, std::optional<Bytes>* made) -> std::string {
                   if (capacity != MEMPLAN_NONE) *made = capacity;
                   return {};
                 });
}

int memplan_problem_check(const memplan_problem* problem, char* error, size_t error_size) {
  const bool done = guarded(error, error_size, [&]() -> std::string {
    return problem == nullptr ? kNoProblem : memplan::check(problem->problem);
  });
  return done ? 1 : 0;
}

// ---- options

void memplan_default_options(memplan_options* options, size_t options_size) {
  memplan_options all{};
  all.struct_size = options_size;
  all.solver = "auto";
  all.objective = MEMPLAN_MIN_PEAK;
  all.seconds = -1;
  all.nodes = -1;
  all.threads = 1;
  if (options == nullptr) return;
  std::memset(options, 0, options_size);  // clears the fields of later versions, too
  std::memcpy(options, &all, std::min(options_size, sizeof all));
}

// ---- plans

void memplan_plan_free(memplan_plan* plan) { delete plan; }

memplan_status memplan_plan_status(const memplan_plan* plan) {
  if (plan == nullptr) return MEMPLAN_UNKNOWN;
  switch (plan->plan.status) {
    case memplan::Status::kOptimal:
      return MEMPLAN_OPTIMAL;
    case memplan::Status::kFeasible:
      return MEMPLAN_FEASIBLE;
    case memplan::Status::kInfeasible:
      return MEMPLAN_INFEASIBLE;
    case memplan::Status::kFits:
      return MEMPLAN_FITS;
    case memplan::Status::kUnknown:
      break;
  }
  return MEMPLAN_UNKNOWN;
}

size_t memplan_plan_count(const memplan_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.offsets.size();
}

const int64_t* memplan_plan_offsets(const memplan_plan* plan) {
  // A vector without buffers may have no memory, but NULL would mean that there is no plan.
  static constexpr int64_t kNone = 0;
  if (plan == nullptr || !plan->plan.has_offsets()) return nullptr;
  return plan->plan.offsets.empty() ? &kNone : plan->plan.offsets.data();
}

int64_t memplan_plan_peak(const memplan_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.peak;
}

int64_t memplan_plan_lower_bound(const memplan_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.lower_bound;
}

size_t memplan_plan_conflict_count(const memplan_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.conflict.size();
}

const int32_t* memplan_plan_conflict(const memplan_plan* plan) {
  return memplan_plan_conflict_count(plan) == 0 ? nullptr : plan->plan.conflict.data();
}

int64_t memplan_plan_nodes(const memplan_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.stats.nodes;
}

const char* memplan_plan_solver(const memplan_plan* plan) {
  return plan == nullptr ? "" : plan->plan.stats.solver.c_str();
}

const char* memplan_plan_note(const memplan_plan* plan) {
  return plan == nullptr ? "" : plan->plan.stats.note.c_str();
}

int memplan_plan_interrupted(const memplan_plan* plan) {
  return plan != nullptr && plan->plan.stats.interrupted ? 1 : 0;
}

int memplan_plan_proof_complete(const memplan_plan* plan) {
  return plan != nullptr && plan->proof_complete ? 1 : 0;
}

const char* memplan_status_name(memplan_status status) {
  switch (status) {
    case MEMPLAN_OPTIMAL:
      return memplan::name(memplan::Status::kOptimal);
    case MEMPLAN_FEASIBLE:
      return memplan::name(memplan::Status::kFeasible);
    case MEMPLAN_INFEASIBLE:
      return memplan::name(memplan::Status::kInfeasible);
    case MEMPLAN_FITS:
      return memplan::name(memplan::Status::kFits);
    case MEMPLAN_UNKNOWN:
      break;
  }
  return memplan::name(memplan::Status::kUnknown);
}
