// What the adapters share: the rows of a host are planned by memplan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memplan.h"  // of `make onefile`; with an installed library <memplan/c_api.h>

namespace memplan_adapters {

struct Row {
  std::int64_t start;  // the row holds its bytes during [start, end)
  std::int64_t end;
  std::int64_t size;
  std::int64_t alignment;
};

// Returns an offset for each row, and sets `peak`. Without an answer (a size below 0, for one)
// there are no offsets: the host then calls its own planner. The budget is counted in nodes, so
// that the plan is the same on every machine.
inline std::vector<std::int64_t> plan_rows(const std::vector<Row>& rows, std::int64_t* peak) {
  std::vector<std::int64_t> start, end, size, alignment, offsets;
  for (const Row& row : rows) {
    start.push_back(row.start);
    end.push_back(std::max(row.end, row.start + 1));  // memplan has no empty lifetimes
    size.push_back(row.size);
    alignment.push_back(std::max<std::int64_t>(row.alignment, 1));
  }
  memplan_problem* problem =
      memplan_problem_create(rows.size(), start.data(), end.data(), size.data(), nullptr, 0);
  if (problem != nullptr) {
    memplan_problem_set_alignment(problem, alignment.data(), nullptr, 0);
    memplan_options options;
    memplan_default_options(&options, sizeof options);
    options.nodes = 100000;
    memplan_plan* plan = memplan_solve(problem, &options, nullptr, 0);
    const std::int64_t* found = memplan_plan_offsets(plan);
    if (found != nullptr) offsets.assign(found, found + rows.size());
    *peak = memplan_plan_peak(plan);
    memplan_plan_free(plan);
  }
  memplan_problem_free(problem);
  return offsets;
}

inline std::int64_t round_up(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace memplan_adapters
