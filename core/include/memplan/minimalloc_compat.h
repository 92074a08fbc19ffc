// The interface of the library minimalloc, for callers who want the solvers of memplan behind it:
//
//     minimalloc::Problem problem;
//     problem.capacity = 12;
//     problem.buffers.push_back({"b1", {0, 3}, 4});
//     minimalloc::Solver solver;
//     auto solution = solver.Solve(problem);
//     if (solution.ok()) use(solution->offsets, solution->height);
//
// Results are StatusOr and a timeout is a Duration. Both are of this header, unless the whole
// program is compiled with MEMPLAN_COMPAT_ABSEIL: then the first is absl::StatusOr, and
// absl::Duration is one. docs/minimalloc.md says where answers differ. Only a lack of
// memory throws.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef MEMPLAN_COMPAT_ABSEIL
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#endif

namespace memplan {
struct OutsideSolver;  // solve.h
}

namespace minimalloc {
// A namespace of its own, so that a program may be linked with the other library too.
inline namespace memplan_compat {

#ifdef MEMPLAN_COMPAT_ABSEIL

using absl::Status;
using absl::StatusOr;
inline Status MakeStatus(int code, const std::string& message) {
  return Status(static_cast<absl::StatusCode>(code), message);
}

#else

// The numbers are those of absl::StatusCode.
enum class StatusCode : int { kOk = 0, kInvalidArgument = 3, kDeadlineExceeded = 4, kNotFound = 5 };

class Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  std::string_view message() const { return message_; }
  std::string ToString() const;  // "NOT_FOUND: " and the message
  friend std::ostream& operator<<(std::ostream& out, const Status& status) {
    return out << status.ToString();
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};
inline Status MakeStatus(int code, const std::string& message) {
  return Status(static_cast<StatusCode>(code), message);
}

// A value, or why there is none. The value may only be asked for where there is one.
template <typename T>
class StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}          // NOLINT: as in abseil
  StatusOr(Status status) : status_(std::move(status)) {}  // NOLINT
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  const T& value() const& { return *value_; }
  T& value() & { return *value_; }
  T&& value() && { return *std::move(value_); }
  const T& operator*() const& { return *value_; }
  T& operator*() & { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  const T* operator->() const { return &*value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

#endif

// Seconds. Each duration of <chrono> is one, and with abseil each of its own; all programs have one
// layout.
class Duration {
 public:
  Duration() = default;
  template <typename Count, typename Period>
  Duration(std::chrono::duration<Count, Period> time)  // NOLINT: as in abseil
      : seconds_(std::chrono::duration<double>(time).count()) {}
#ifdef MEMPLAN_COMPAT_ABSEIL
  Duration(absl::Duration time) : seconds_(absl::ToDoubleSeconds(time)) {}  // NOLINT
  operator absl::Duration() const { return absl::Seconds(seconds_); }       // NOLINT
#endif
  double seconds() const { return seconds_; }

 private:
  double seconds_ = std::numeric_limits<double>::infinity();
};

template <typename T>
struct Interval {
  T lower_ = 0;
  T upper_ = 0;

  T lower() const { return lower_; }
  T upper() const { return upper_; }
  bool operator==(const Interval& other) const {
    return lower_ == other.lower_ && upper_ == other.upper_;
  }
  bool operator<(const Interval& other) const {
    return std::pair(lower_, upper_) < std::pair(other.lower_, other.upper_);
  }
  friend std::ostream& operator<<(std::ostream& out, const Interval& interval) {
    return out << "[" << interval.lower_ << ", " << interval.upper_ << ")";
  }
};

using BufferIdx = std::int64_t;
using Capacity = std::int64_t;
using Offset = std::int64_t;
using TimeValue = std::int64_t;
using Area = std::int64_t;
using Lifespan = Interval<TimeValue>;
using Window = Interval<Offset>;

// The time in which a buffer holds its window only, or nothing.
struct Gap {
  Lifespan lifespan;
  std::optional<Window> window;
  bool operator==(const Gap& other) const;
};

struct Buffer {
  std::string id;
  Lifespan lifespan = {0, 0};  // half-open
  std::int64_t size = 0;
  std::int64_t alignment = 1;
  std::vector<Gap> gaps;
  std::optional<Offset> offset;  // a pin
  std::optional<Offset> hint;    // read and written, and of no effect

  Area area() const;  // size times lifespan
  // What `other` needs between the two offsets in order to lie above; nothing if the two never hold
  // memory at the same time.
  std::optional<std::int64_t> effective_size(const Buffer& other) const;
  bool operator==(const Buffer& other) const;  // hints do not count
};

struct Solution {
  std::vector<Offset> offsets;  // by buffer
  Offset height = 0;            // the largest end of a buffer
  bool operator==(const Solution& other) const { return offsets == other.offsets; }
};

struct Problem {
  std::vector<Buffer> buffers;
  Capacity capacity = 0;

  // Moves the pins of all buffers to a solution. Every buffer must have one.
  StatusOr<Solution> strip_solution();
  bool operator==(const Problem& other) const;
};

using CanonicalOnlyParam = bool;
using SectionInferenceParam = bool;
using DynamicOrderingParam = bool;
using CheckDominanceParam = bool;
using UnallocatedFloorParam = bool;
using StaticPreorderingParam = bool;
using DynamicDecompositionParam = bool;
using MonotonicFloorParam = bool;
using HatlessPruningParam = bool;
using MinimizeCapacity = bool;
using PreorderingHeuristic = std::string;

struct SolverParams;

// The published search, of the library memplan_published, for SolverParams::published.
std::shared_ptr<const memplan::OutsideSolver> Published(const SolverParams& params);

// The switches of the published search, which `published` asks for. Other than by that, they and
// the heuristics change nothing: memplan has searches of its own.
struct SolverParams {
  Duration timeout;  // no limit
  CanonicalOnlyParam canonical_only = true;
  SectionInferenceParam section_inference = true;
  DynamicOrderingParam dynamic_ordering = true;
  CheckDominanceParam check_dominance = true;
  UnallocatedFloorParam unallocated_floor = true;
  StaticPreorderingParam static_preordering = true;
  DynamicDecompositionParam dynamic_decomposition = true;
  MonotonicFloorParam monotonic_floor = true;
  HatlessPruningParam hatless_pruning = true;
  MinimizeCapacity minimize_capacity = false;  // the least height within the capacity
  std::vector<PreorderingHeuristic> preordering_heuristics = {"WAT", "TAW", "TWA"};
  // Empty for the searches of memplan, or Published.
  std::function<std::shared_ptr<const memplan::OutsideSolver>(const SolverParams&)> published;
};

// What a heuristic compares, of one buffer.
struct PreorderData {
  Area area = 0;
  TimeValue lower = 0;
  std::uint64_t overlaps = 0;  // other buffers that are live at some time when it is
  std::int64_t sections = 0;
  std::int64_t size = 0;
  std::int64_t total = 0;  // the greatest load while it is live
  TimeValue upper = 0;
  std::int64_t width = 0;  // of its lifespan
  BufferIdx buffer_idx = 0;
};

// Whether a buffer comes before another one: by the letters of the heuristic in turn, the greater
// first, and then by index. A letter that names nothing has no effect.
class PreorderingComparator {
 public:
  explicit PreorderingComparator(const PreorderingHeuristic& heuristic) : letters_(heuristic) {}

  bool operator()(const PreorderData& a, const PreorderData& b) const {
    for (const char letter : letters_) {
      if (letter == 'O' && a.overlaps != b.overlaps) return a.overlaps > b.overlaps;
      if (value(a, letter) != value(b, letter)) return value(a, letter) > value(b, letter);
    }
    return a.buffer_idx < b.buffer_idx;
  }

  friend std::ostream& operator<<(std::ostream& out, const PreorderingComparator& comparator) {
    return out << "preorder heuristic " << comparator.letters_;
  }

 private:
  static std::int64_t value(const PreorderData& data, char letter) {
    switch (letter) {
      case 'A':
        return data.area;
      case 'C':
        return data.sections;
      case 'L':
        return data.lower;
      case 'T':
        return data.total;
      case 'U':
        return data.upper;
      case 'W':
        return data.width;
      case 'Z':
        return data.size;
      default:
        return 0;
    }
  }

  PreorderingHeuristic letters_;
};

enum ValidationResult {
  kGood = 0,
  kBadSolution = 1,   // it has not one offset for each buffer
  kBadFixed = 2,      // a buffer is not at its pin
  kBadOffset = 3,     // negative, or above the capacity
  kBadOverlap = 4,    // two buffers hold the same address at the same time
  kBadAlignment = 5,  // an offset is no multiple of the alignment
  kBadHeight = 6      // the height is not that of the offsets
};

[[nodiscard]] ValidationResult Validate(const Problem& problem, const Solution& solution);

// A table as the program minimalloc writes it. `old_format` writes the last time in place of the
// end.
std::string ToCsv(const Problem& problem, const Solution* solution = nullptr,
                  bool old_format = false);

namespace detail {

constexpr int kInvalid = 3;
constexpr int kDeadline = 4;
constexpr int kNotFound = 5;

// What the library is compiled with, whatever the results of this header are.
struct Outcome {
  int code = 0;  // of absl::StatusCode, of which these are some
  std::string message;
};

// Asked every 20 ms; true ends the search.
using Interrupt = std::function<bool()>;

// Each leaves its answer where its last argument says; `nodes` is the work of the search.
Outcome Solve(const Problem& problem, const SolverParams& params, const Interrupt& interrupt,
              std::int64_t* nodes, Solution* solution);
Outcome FindInfeasible(const Problem& problem, const SolverParams& params,
                       const Interrupt& interrupt, std::int64_t* nodes,
                       std::vector<BufferIdx>* subset);
Outcome FromCsv(std::string_view text, Problem* problem);

template <typename T>
StatusOr<T> Answer(const Outcome& outcome, T value) {
  if (outcome.code != 0) return MakeStatus(outcome.code, outcome.message);
  return value;
}

}  // namespace detail

// Reads a table: the first line names the columns, and an empty line ends it.
inline StatusOr<Problem> FromCsv(std::string_view text) {
  Problem problem;
  const detail::Outcome outcome = detail::FromCsv(text, &problem);
  return detail::Answer(outcome, std::move(problem));
}

inline StatusOr<Solution> Problem::strip_solution() {
  Solution solution;
  for (Buffer& buffer : buffers) {
    if (!buffer.offset)
      return MakeStatus(detail::kNotFound, "buffer " + buffer.id + " has no offset");
    solution.offsets.push_back(*buffer.offset);
    buffer.offset.reset();
  }
  return solution;
}

class Solver {
 public:
  Solver() {}
  explicit Solver(const SolverParams& params) : params_(params) {}
  virtual ~Solver() = default;

  // NOT_FOUND if there is no solution, proved; DEADLINE_EXCEEDED if the time or Cancel() ended the
  // search without one; INVALID_ARGUMENT for a problem that is not well formed.
  StatusOr<Solution> Solve(const Problem& problem) {
    Solution solution;
    const detail::Outcome outcome =
        detail::Solve(problem, params_, begin(), &backtracks_, &solution);
    return detail::Answer(outcome, std::move(solution));
  }

  // Buffers that have no solution together and have one without any of them; all buffers of a
  // problem that has a solution.
  StatusOr<std::vector<BufferIdx>> ComputeIrreducibleInfeasibleSubset(const Problem& problem) {
    std::vector<BufferIdx> subset;
    const detail::Outcome outcome =
        detail::FindInfeasible(problem, params_, begin(), &backtracks_, &subset);
    return detail::Answer(outcome, std::move(subset));
  }

  // The work of the last search: its nodes, at least 1 where it proved that there is no solution.
  std::int64_t get_backtracks() const { return backtracks_; }

  // Ends the search that another thread waits for.
  void Cancel() { cancelled_ = true; }

 protected:
  const SolverParams params_;
  std::int64_t backtracks_ = 0;
  std::atomic<bool> cancelled_{false};

 private:
  detail::Interrupt begin() {
    cancelled_ = false;
    return [this] { return cancelled_.load(); };
  }
};

}  // namespace memplan_compat
}  // namespace minimalloc
