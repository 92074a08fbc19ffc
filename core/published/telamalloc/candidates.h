// Which blocks are tried at a decision point, and in which order (TelaMalloc, sections 5.1 to 5.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/telamalloc.h"
#include "model/items.h"
#include "published/telamalloc/ranges.h"
#include "published/telamalloc/unplaced.h"

namespace memplan {

// A node of the search tree that is on the path, or at its end.
struct DecisionPoint {
  // The first `tried` have been tried. More are listed when these are used up.
  std::vector<ItemIdx> candidates;
  std::size_t tried = 0;
  std::int32_t home = -1;    // the phase of the block placed last, if it is to be listed first
  std::int32_t phase = -1;   // of the others, whose candidates were listed last
  bool home_listed = false;  // those of home
  bool all = false;          // everything that is unplaced is listed

  std::vector<std::int32_t> culprits;  // levels above that what failed here follows from, ascending
  std::int32_t returns = 0;            // how often the search went back to it
  std::int64_t born = 0;               // the backtracks before it came to be
  std::int64_t patient_since = 0;      // and before its subtree was last given time
};

class Candidates {
 public:
  // Throws std::invalid_argument for an unknown `select`.
  Candidates(const TelamallocOptions& options, const Unplaced& unplaced, const ValidRanges& ranges);

  // Whether `select` names one heuristic, which lists all that is unplaced.
  bool one_heuristic() const { return select_ != Select::kTela; }

  // Allows only a few candidates at a point again, as for a new subproblem.
  void narrow() { most_ = fewest_; }
  // Allows one more, where the search has tried all that are allowed. Returns false if it has tried
  // all there are, for a subproblem of so many blocks.
  bool widen(std::size_t blocks) {
    if (one_heuristic() || published_ || most_ >= blocks) return false;
    ++most_;
    return true;
  }

  // Only phases below `end` are of the subproblem at hand.
  void limit_phases(std::int32_t end) { phase_end_ = end; }
  // Resets a point; `home` is the phase of the block placed last, or -1.
  void open(DecisionPoint* point, std::int32_t home) const;
  // The next one to try, or kNoItem. What is unplaced, and the bounds, must be as when it was
  // opened.
  ItemIdx next(DecisionPoint* point);
  // Whether there may be a next one.
  bool has_more(const DecisionPoint& point) const {
    return point.tried < point.candidates.size() || !full(point);
  }
  // The candidates of a point that has failed come next at one above it.
  void hoist(const DecisionPoint& failed, DecisionPoint* above);
  // Lists all that is unplaced.
  void list_all(DecisionPoint* point);

 private:
  enum class Select { kTela, kSize, kArea, kLifetime, kLowest };

  static Select parse(const std::string& name);
  // The first of the candidates of a point that count for the bound: as published, those that have
  // been tried do not.
  std::size_t first_counted(const DecisionPoint& point) const {
    return published_ ? point.tried : 0;
  }
  bool full(const DecisionPoint& point) const {
    return point.all || point.candidates.size() - first_counted(point) >= most_;
  }
  bool list_next_phase(DecisionPoint* point);
  std::int32_t next_phase(DecisionPoint* point) const;
  ItemIdx only_after(ItemIdx last) const;
  ItemIdx lowest_after(ItemIdx last) const;

  const Select select_;
  const bool published_;
  const std::size_t fewest_;
  std::size_t most_;
  const Unplaced& unplaced_;
  const ValidRanges& ranges_;
  std::int32_t phase_end_ = 0;
  std::vector<ItemIdx> waiting_;
  std::vector<char> is_listed_;  // by item; 0 for all between calls
};

}  // namespace memplan
