// The policy that decides where the search goes back to when a decision point has no candidates
// left (TelaMalloc, sections 5.4 and 6).
//
//   level   0      1      2      3      4
//   path    b7 --- b2 --- b9 --- b4 --- (impasse: every candidate here is a dead end)
//                  ^             ^
//                  culprits: the placements that the dead ends follow from, except the candidate
//                  itself, which is the last of them: a minor backtrack takes back no more
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/policy.h"
#include "memplan/types.h"

namespace memplan {

// The features that a model learns from (section 6.4).
enum BacktrackFeature : std::size_t {
  kSizeFeature,         // of the block placed at that point, as a part of the capacity
  kLifetimeFeature,     // as a part of the sections of the subproblem
  kContentionFeature,   // the greatest load while it lives, as a part of the capacity
  kLevelFeature,        // the decision level
  kCulpritFeature,      // how often this block was a culprit of a major backtrack
  kReturnsFeature,      // how often the search went back to this point
  kTreeReturnsFeature,  // how often it went back anywhere in the tree below, minor or major
  kSamePhaseFeature,    // 1 if it is in the phase of the last block of the path, else 0
  kBacktracksFeature,   // all backtracks so far, minor and major
  kBacktrackFeatures,
};

// The features of a decision that the search could go back to.
struct BacktrackTarget {
  std::int32_t level = 0;  // what is placed there, and after it, is taken back: path[level ..]
  std::array<float, kBacktrackFeatures> features = {};
};

// The state at a major backtrack. Subproblems (stretches of time that no buffer crosses) are
// searched one after the other, and this speaks of one only.
struct Impasse {
  Bytes capacity;
  const std::vector<BufferIdx>& part;  // the buffers of the subproblem, sorted; path is of these
  const std::vector<Placement>& path;  // by level, outermost first; never empty
  // Deepest first, at least one (section 6.2): the culprits of the path, and the deepest level of
  // each of the ranges 0-4, 5-8, 9-16, ... that has none of them.
  const std::vector<BacktrackTarget>& targets;
};

// Decides at every major backtrack where to go back to.
class BacktrackPolicy {
 public:
  static constexpr int kByRule = -1;  // to the second-to-last culprit (section 5.4)
  static constexpr int kTryAll = -2;  // try all blocks that are unplaced at this point until one
                                      // fits, and if none does, go back one step (section 6.5)

  virtual ~BacktrackPolicy() = default;
  // An index in `targets`, or one of the above.
  virtual int choose(const Impasse& now) = 0;
  // Called when this path solves a subproblem, with the same `part` as at its impasses.
  virtual void solved(const std::vector<BufferIdx>& part, const std::vector<Placement>& path) {
    static_cast<void>(part);
    static_cast<void>(path);
  }
};

}  // namespace memplan
