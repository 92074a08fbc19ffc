#include <algorithm>
#include <chrono>

#include "compat/held.h"
#include "solve/alone.h"

namespace minimalloc {
inline namespace memplan_compat {

#ifndef MEMPLAN_COMPAT_ABSEIL
std::string Status::ToString() const {
  switch (code_) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT: " + message_;
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED: " + message_;
    case StatusCode::kNotFound:
      break;
  }
  return "NOT_FOUND: " + message_;
}
#endif

namespace {

using detail::Interrupt;
using detail::kDeadline;
using detail::kInvalid;
using detail::kNotFound;
using detail::Outcome;

std::string name_of(const Buffer& buffer) { return "buffer \"" + buffer.id + "\""; }

// What is wrong with a buffer, or an empty string.
std::string fault_of(const Buffer& buffer) {
  if (buffer.lifespan.upper() < buffer.lifespan.lower()) {
    return name_of(buffer) + " ends before it begins";
  }
  if (buffer.alignment < 1) return name_of(buffer) + " has an alignment below 1";
  for (const Gap& gap : buffer.gaps) {
    if (gap.window && (gap.window->lower() < 0 || gap.window->upper() < gap.window->lower() ||
                       gap.window->upper() > buffer.size)) {
      return name_of(buffer) + " has a window that is not inside the buffer";
    }
  }
  return "";
}

// A problem in two parts: the core has no buffers without a lifetime. Hints are left out: the
// library of that name reads and writes them only, and a plan that keeps them may be higher.
struct Parts {
  memplan::Problem problem;
  std::vector<std::size_t> rows;      // of the problem: the buffers that have a lifetime
  std::vector<std::size_t> timeless;  // the others
};

// `whole`: the buffers that hold all of themselves where they have windows.
void add_gaps(const Buffer& buffer, bool whole, memplan::Problem* problem) {
  const auto row = static_cast<memplan::BufferIdx>(problem->size.size() - 1);
  const Window all{0, buffer.size};
  const std::vector<TimeValue> times = detail::ChangesOf(buffer);
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    const std::optional<Window> held = detail::HeldAt(buffer, times[i]);
    if (held && (whole || *held == all)) continue;
    const Window kept = held.value_or(Window{0, 0});
    problem->gaps.push_back({row, times[i], times[i + 1], kept.lower(), kept.upper()});
  }
}

Parts part(const Problem& problem, const std::vector<char>& whole) {
  Parts parts;
  memplan::Problem& core = parts.problem;
  core.capacity = std::min(problem.capacity, memplan::kMaxBytes);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    const bool lives = buffer.lifespan.lower() < buffer.lifespan.upper();
    (lives ? parts.rows : parts.timeless).push_back(i);
    if (!lives) continue;
    core.start.push_back(buffer.lifespan.lower());
    core.end.push_back(buffer.lifespan.upper());
    core.size.push_back(buffer.size);
    core.alignment.push_back(buffer.alignment);
    core.pin.push_back(buffer.offset.value_or(memplan::kNoOffset));
    add_gaps(buffer, whole[i] != 0, &core);
  }
  const auto none = [](memplan::Bytes pin) { return pin == memplan::kNoOffset; };
  if (std::all_of(core.pin.begin(), core.pin.end(), none)) core.pin.clear();
  const auto one = [](memplan::Bytes alignment) { return alignment == 1; };
  if (std::all_of(core.alignment.begin(), core.alignment.end(), one)) core.alignment.clear();
  return parts;
}

// Why the pins have no solution, although the rest is well formed; or an empty string.
std::string fault_of_pins(const Problem& problem) {
  for (const Buffer& buffer : problem.buffers) {
    const Offset pin = buffer.offset.value_or(0);
    if (pin < 0 || pin % buffer.alignment != 0) {
      return name_of(buffer) + " cannot be at offset " + std::to_string(pin);
    }
    if (buffer.size > problem.capacity || pin > problem.capacity - buffer.size) {
      return name_of(buffer) + " does not fit into the capacity of " +
             std::to_string(problem.capacity);
    }
  }
  return "";
}

// Checks what the core does not: INVALID_ARGUMENT or NOT_FOUND.
Outcome check(const Problem& problem, const Parts& parts) {
  for (const Buffer& buffer : problem.buffers) {
    if (std::string fault = fault_of(buffer); !fault.empty()) return {kInvalid, std::move(fault)};
  }
  memplan::Problem free = parts.problem;
  free.pin.clear();
  free.capacity.reset();
  if (std::string fault = memplan::check(free); !fault.empty()) return {kInvalid, std::move(fault)};
  if (std::string fault = fault_of_pins(problem); !fault.empty()) return {kNotFound, fault};
  return {};
}

memplan::SolveOptions options_of(const SolverParams& params, const Interrupt& interrupt) {
  memplan::SolveOptions options;
  options.budget.seconds = std::max(params.timeout.seconds(), 0.0);
  options.interrupt = interrupt;
  if (params.published) options.outside = params.published(params);
  return options;
}

// The published search places buffers low, whatever the capacity, and callers read the height. So a
// plan that only fits is lowered, with little work.
void lower(const memplan::Problem& problem, memplan::SolveOptions options, memplan::Plan* plan) {
  constexpr std::int64_t kNodes = 10'000;
  options.objective = memplan::Objective::kMinPeak;
  options.budget.nodes = kNodes;
  memplan::Plan found;
  memplan::try_solve(problem, options, &found);
  if (found.has_offsets() && found.peak < plan->peak) {
    found.stats.nodes += plan->stats.nodes;
    *plan = std::move(found);
  }
}

Outcome solve_parts(const Problem& problem, const Parts& parts, const SolverParams& params,
                    const Interrupt& interrupt, memplan::Plan* plan) {
  if (parts.rows.empty()) {
    plan->status = memplan::Status::kFits;
    return {};
  }
  memplan::SolveOptions options = options_of(params, interrupt);
  if (params.published && params.preordering_heuristics.empty()) {
    return {kInvalid, "the published search needs an order: preordering_heuristics is empty"};
  }
  // A capacity of 0 is none for the core; it holds buffers of size 0 at offset 0.
  memplan::Problem core = parts.problem;
  core.capacity = std::max(*core.capacity, memplan::Bytes{1});
  if (!params.minimize_capacity) options.objective = memplan::Objective::kFit;
  if (const std::string fault = memplan::check(core); !fault.empty()) return {kNotFound, fault};
  if (std::string fault = memplan::try_solve(core, options, plan); !fault.empty()) {
    return {kInvalid, std::move(fault)};
  }
  if (!params.published && plan->status == memplan::Status::kFits) lower(core, options, plan);
  const std::string within = " within the capacity of " + std::to_string(problem.capacity);
  if (plan->status == memplan::Status::kInfeasible) {
    return {kNotFound, "there is no solution" + within};
  }
  if (plan->status == memplan::Status::kUnknown) {
    return {kDeadline, "the search ended before it found a solution" + within};
  }
  return {};
}

Outcome solve_once(const Problem& problem, const std::vector<char>& whole,
                   const SolverParams& params, const Interrupt& interrupt, std::int64_t* nodes,
                   Solution* solution) {
  const Parts parts = part(problem, whole);
  if (Outcome outcome = check(problem, parts); outcome.code != 0) return outcome;
  memplan::Plan plan;
  Outcome outcome = solve_parts(problem, parts, params, interrupt, &plan);
  *nodes += plan.stats.nodes;
  if (outcome.code != 0) return outcome;
  solution->offsets.assign(problem.buffers.size(), 0);
  for (std::size_t row = 0; row < parts.rows.size(); ++row) {
    solution->offsets[parts.rows[row]] = plan.offsets[row];
  }
  for (const std::size_t i : parts.timeless) {
    solution->offsets[i] = problem.buffers[i].offset.value_or(0);
  }
  solution->height = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    solution->height = std::max(solution->height, solution->offsets[i] + problem.buffers[i].size);
  }
  return {};
}

bool has_windows(const Buffer& buffer) {
  return std::any_of(buffer.gaps.begin(), buffer.gaps.end(),
                     [](const Gap& gap) { return gap.window.has_value(); });
}

// Whether one of two buffers is above the other at all times, as the library of that name wants it.
bool is_ordered(const Buffer& a, Offset offset_a, const Buffer& b, Offset offset_b) {
  const auto below_b = a.effective_size(b);
  const auto below_a = b.effective_size(a);
  return !below_b || !below_a || offset_a + *below_b <= offset_b || offset_b + *below_a <= offset_a;
}

// Marks the buffers with windows that are above another one at one time, and below it at another.
// Returns whether it marked any.
bool mark_crossing(const Problem& problem, const Solution& solution, std::vector<char>* whole) {
  bool marked = false;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if ((*whole)[i] != 0 || !has_windows(buffer)) continue;
    for (std::size_t j = 0; j < problem.buffers.size(); ++j) {
      if (j == i ||
          is_ordered(buffer, solution.offsets[i], problem.buffers[j], solution.offsets[j])) {
        continue;
      }
      (*whole)[i] = 1;
      marked = true;
      break;
    }
  }
  return marked;
}

}  // namespace

Outcome detail::Solve(const Problem& problem, const SolverParams& params,
                      const Interrupt& interrupt, std::int64_t* nodes, Solution* solution) {
  *nodes = 0;
  std::vector<char> whole(problem.buffers.size(), 0);
  if (Outcome outcome = solve_once(problem, whole, params, interrupt, nodes, solution);
      outcome.code != 0) {
    // A bound may prove it without a node, and callers ask whether there was a search.
    if (outcome.code == kNotFound) *nodes = std::max(*nodes, std::int64_t{1});
    return outcome;
  }
  // Buffers that cross are safe for all programs; but callers may check with the other library.
  Solution ordered = *solution;
  while (mark_crossing(problem, ordered, &whole)) {
    if (solve_once(problem, whole, params, interrupt, nodes, &ordered).code != 0) return {};
  }
  *solution = std::move(ordered);
  return {};
}

// Leaves out one buffer after the other, as long as the rest has no solution.
Outcome detail::FindInfeasible(const Problem& problem, const SolverParams& params,
                               const Interrupt& interrupt, std::int64_t* nodes,
                               std::vector<BufferIdx>* subset) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  *nodes = 0;
  SolverParams left = params;
  left.minimize_capacity = false;
  std::vector<BufferIdx> kept;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i)
    kept.push_back(static_cast<BufferIdx>(i));
  for (std::size_t at = 0; at < kept.size();) {
    Problem rest;
    rest.capacity = problem.capacity;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (i != at) rest.buffers.push_back(problem.buffers[static_cast<std::size_t>(kept[i])]);
    }
    left.timeout = std::chrono::duration<double>(params.timeout.seconds()) - (Clock::now() - begin);
    std::int64_t more = 0;
    Solution found;
    Outcome outcome = Solve(rest, left, interrupt, &more, &found);
    *nodes += more;
    if (outcome.code != 0 && outcome.code != kNotFound) return outcome;
    if (outcome.code == kNotFound) {
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
  *subset = std::move(kept);
  return {};
}

}  // namespace memplan_compat
}  // namespace minimalloc
