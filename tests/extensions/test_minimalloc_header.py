"""Tests that callers of the C++ header compile, with its own results and with those of abseil."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compilers import list_compilers

INCLUDE = Path(__file__).parents[2] / "core" / "include"
COMPILERS = list_compilers("g++", "clang++", flags=["-std=c++20"])

# What a pass of a compiler does with that library.
CALLER = """
#include <memplan/minimalloc_compat.h>

#include <tuple>

#ifdef MEMPLAN_COMPAT_ABSEIL
using Result = absl::StatusOr<minimalloc::Solution>;
const absl::Duration kTimeout = absl::Milliseconds(500);
#else
#include <chrono>
using Result = minimalloc::StatusOr<minimalloc::Solution>;
const std::chrono::milliseconds kTimeout(500);
#endif

using Switches = std::tuple<
    minimalloc::CanonicalOnlyParam, minimalloc::SectionInferenceParam,
    minimalloc::DynamicOrderingParam, minimalloc::CheckDominanceParam,
    minimalloc::UnallocatedFloorParam, minimalloc::StaticPreorderingParam,
    minimalloc::DynamicDecompositionParam, minimalloc::MonotonicFloorParam,
    minimalloc::HatlessPruningParam, minimalloc::MinimizeCapacity,
    minimalloc::PreorderingHeuristic>;

bool comes_first(const Switches& switches) {
  const minimalloc::PreorderData large = {.area = 2, .total = 3, .buffer_idx = 1}, small = {};
  return minimalloc::PreorderingComparator(std::get<10>(switches))(large, small);
}

class Counting : public minimalloc::Solver {
 public:
  using minimalloc::Solver::Solver;
  long count() const { return backtracks_; }
};

minimalloc::Offset place(const std::vector<std::int64_t>& sizes) {
  minimalloc::Problem problem;
  problem.capacity = 1000000000;
  for (const std::int64_t size : sizes) {
    problem.buffers.push_back(minimalloc::Buffer{.id = "b" + std::to_string(size),
                                                 .lifespan = {0, 1 + size},
                                                 .size = size,
                                                 .alignment = 64,
                                                 .gaps = {},
                                                 .offset = std::nullopt,
                                                 .hint = std::nullopt});
  }
  minimalloc::SolverParams params = {.timeout = kTimeout, .minimize_capacity = true};
  Counting solver(params);
  const Result solution = solver.Solve(problem);
  if (!solution.ok()) {
    const auto subset = solver.ComputeIrreducibleInfeasibleSubset(problem);
    return subset.ok() && !solution.status().message().empty() ? -1 : -2;
  }
  minimalloc::Solution copy = *solution;
  auto table = minimalloc::FromCsv(minimalloc::ToCsv(problem, &copy));
  if (!table.ok() || !table->strip_solution().ok()) return -3;
  if (minimalloc::Validate(problem, copy) != minimalloc::ValidationResult::kGood) return -4;
  const minimalloc::Interval<minimalloc::TimeValue>& life = problem.buffers[0].lifespan;
  return copy.height + life.upper() - life.lower() + solution->offsets[0] + solver.count();
}
"""

# As much of abseil as the header asks for.
STATUS = """
#pragma once
#include <string>
#include <string_view>
namespace absl {
enum class StatusCode { kOk = 0 };
class Status {
 public:
  Status(StatusCode, std::string_view) {}
  std::string_view message() const { return ""; }
};
}
"""
STATUS_OR = """
#pragma once
#include <utility>
#include <absl/status/status.h>
namespace absl {
template <typename T>
class StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {}
  StatusOr(T value) : status_(StatusCode::kOk, ""), value_(std::move(value)) {}
  bool ok() const { return true; }
  const Status& status() const { return status_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  T* operator->() { return &value_; }

 private:
  Status status_;
  T value_;
};
}
"""
TIME = """
#pragma once
namespace absl {
class Duration {
 public:
  double seconds = 0;
};
inline Duration Seconds(double count) { return {count}; }
inline Duration Milliseconds(int count) { return {count / 1e3}; }
inline double ToDoubleSeconds(Duration duration) { return duration.seconds; }
}
"""


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("abseil", [False, True])
def test_callers_compile(compiler: str, abseil: bool, tmp_path: Path) -> None:
    """Tests a caller in C++20, without a warning."""
    for name, text in (
        *(("status/status.h", STATUS), ("status/statusor.h", STATUS_OR)),
        ("time/time.h", TIME),
    ):
        file = tmp_path / "absl" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "caller.cpp").write_text(CALLER)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    # The caller leaves out fields on purpose.
    command += ["-Wno-missing-field-initializers", f"-I{INCLUDE}", f"-I{tmp_path}", "caller.cpp"]
    command += ["-DMEMPLAN_COMPAT_ABSEIL"] * abseil
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
