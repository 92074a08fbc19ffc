// Planning again and again with a few buffers changed in between, as a compiler does that decides
// step by step what lives in fast memory (TelaMalloc, sections 5.6 and 7.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "memplan/plan.h"
#include "memplan/problem.h"
#include "memplan/solve.h"

namespace memplan {

using Slot = std::int32_t;  // a buffer of a Repacker, until it is removed

struct Repacked {
  Status status = Status::kUnknown;  // of the question
  Bytes lower_bound = 0;             // proven: no plan has a smaller peak
  std::int64_t moved = 0;            // buffers of the plan before that lie elsewhere now
  std::vector<Slot> conflict;        // of kInfeasible: those that cannot be placed together
  Stats stats;                       // solver is "repack" where the plan before was mended

  bool has_plan() const { return memplan::has_plan(status); }
};

// A plan that is kept while buffers come and go. What stays is left where it is and what is new
// goes into the holes. Where that is not enough, a few others move, and only where that fails too,
// a solver plans all of it again.
//
// It is for one thread at a time: while repack() runs, every other call throws std::runtime_error.
//
// It keeps alignments, pins, reserved ranges and gaps. While a plan is mended, a gap counts as
// held.
class Repacker {
 public:
  // Throws std::invalid_argument for ranges that are not sorted, disjoint and within 2^62.
  explicit Repacker(std::vector<Reserved> reserved = {});
  ~Repacker();
  // A copy keeps a state to come back to, or one on which a change can be tried.
  Repacker(const Repacker& other);
  Repacker& operator=(const Repacker& other);
  Repacker(Repacker&&) noexcept;
  Repacker& operator=(Repacker&&) noexcept;

  // All that later calls depend on, as numbers that only restored() of the same version reads.
  std::vector<std::int64_t> save() const;
  // The same repacker, as it was. Throws std::invalid_argument for other numbers.
  static Repacker restored(std::vector<std::int64_t> saved);

  // Adds all rows of a problem, but not its capacity and reserved ranges. Throws
  // std::invalid_argument, and adds nothing, for rows that are not well formed, for pins that
  // collide with those that are there, for conflicts and groups, and for more than 2^62 bytes in
  // all.
  std::vector<Slot> add(const Problem& rows);
  // Throws std::out_of_range, and removes nothing, for slots that are not in use or named twice.
  void remove(const std::vector<Slot>& slots);

  // Places all buffers within the capacity: at the first plan, or by options.objective at the
  // smallest peak that it finds. Without an answer, buffers of the plan before stay where they
  // were. kInfeasible is proved. `solver`, `budget`, `threads`, `seed` and `interrupt` of the
  // options are kept; the solver must be one of solve().
  Repacked repack(std::optional<Bytes> capacity, const SolveOptions& options);

  // These throw std::out_of_range for slots that are not in use.
  std::size_t count() const;
  // No plan has a smaller peak: what is held at the fullest time, and pins. O(n log n).
  Bytes lower_bound();
  Bytes peak() const;               // of those that are placed
  Bytes offset(Slot slot) const;    // or kNoOffset, where it is not placed yet
  std::vector<Slot> slots() const;  // in use, by rising number
  // Start, end, size, alignment, pin and offset of these buffers, one column behind the other, in
  // this order.
  static constexpr std::size_t kColumns = 6;
  std::vector<Bytes> columns(const std::vector<Slot>& slots) const;
  // These buffers as a problem, in this order, with the reserved ranges.
  Problem problem(const std::vector<Slot>& slots) const;

 private:
  class State;
  State& idle() const;  // throws std::runtime_error while repack() is at work
  std::unique_ptr<State> state_;
};

}  // namespace memplan
