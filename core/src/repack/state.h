// The state of a repacker, and one call of it.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memplan/budget.h"
#include "memplan/repacker.h"
#include "repack/arena.h"

namespace memplan {

class Repacker::State {
 public:
  explicit State(std::vector<Reserved> reserved) : arena(std::move(reserved)) {}

  std::vector<Slot> add(const Problem& rows);
  void remove(const std::vector<Slot>& slots);
  Repacked repack(std::optional<Bytes> capacity, const SolveOptions& options);
  Bytes lower_bound() {
    looked_up_ = false;
    look_up();
    return bound_;
  }

  // Throws std::out_of_range for a slot that is not in use.
  void require(Slot slot) const {
    if (!arena.uses(slot)) {
      throw std::out_of_range("slot " + std::to_string(slot) + " is not in use.");
    }
  }

  repack::Arena arena;
  bool busy = false;  // repack() is at work

  // Checks the arena, and the total of its sizes.
  bool check_invariants() const;

 private:
  // One call of repack().
  struct Call {
    const SolveOptions& options;
    Stopper stopper;
    Repacked answer;

    explicit Call(const SolveOptions& given)
        : options(given), stopper(given.budget.seconds, given.interrupt) {}
    std::int64_t nodes_left() const { return options.budget.nodes - answer.stats.nodes; }
  };

  void check_pins(const Problem& rows) const;
  bool answer(std::optional<Bytes> capacity, Call* call);
  Status fit(Bytes limit, Call* call);
  bool settle_pins(Bytes limit);
  Status mend(Bytes limit, Call* call);
  void look_up();
  bool solve_anew(std::optional<Bytes> capacity, Objective objective, Call* call);
  void minimise(std::optional<Bytes> capacity, Call* call);
  bool mends_to(Bytes limit, Call* call);
  void put(const std::vector<Bytes>& offsets);

  Bytes total_ = 0;  // of all sizes
  std::vector<Slot> homeless_;
  std::vector<Slot> rejected_;
  // The buffers by row, if they were looked at as a problem.
  bool looked_up_ = false;
  std::vector<Slot> slots_;
  Problem problem_;
  Bytes bound_ = 0;
  Time fullest_ = 0;            // when the load was greatest, the last time that it was looked for
  std::vector<Slot> conflict_;  // why fit() said kInfeasible
  const char* note_ = "";
  int pause_ = 0;  // of mends_to(): calls between two trials, and those left
  int waits_ = 0;
};

}  // namespace memplan
