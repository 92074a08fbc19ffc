// Lowers the best plan by ejection: what reaches above a goal finds other places.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "large/course.h"
#include "large/ejection.h"

namespace memplan::chain {

// A goal that is reached is followed by one twice as far below the new peak, and one that is missed
// by one half as far below.
class Lowering {
 public:
  // The course must outlive it, and have a plan when an effort begins. The first effort may spend
  // so many nodes on a goal.
  Lowering(Course& course, std::int64_t nodes, std::uint64_t seed)
      : course_(course), seed_(seed), nodes_(nodes) {}

  // Tries goals down to the finest step. Each effort may spend twice as many nodes on a goal as the
  // one before that was in vain, but not more than `most`.
  //
  // It ends, because a goal that is reached lowers the peak, which does not pass the target, and
  // between two of these the step halves until it is the finest.
  void effort(std::int64_t most);

  // Whether so many efforts were in vain that a longer one is not worth its time.
  bool tired() const;

 private:
  // Whether there is now a plan at or below the goal.
  bool reach_goal(std::int64_t nodes);
  std::vector<BufferIdx> take_out(std::vector<Bytes>* offsets) const;

  Course& course_;
  std::uint64_t seed_;
  std::unique_ptr<Ejection> ejection_;  // made when it is first needed
  std::int64_t nodes_;
  Bytes step_ = kMaxBytes;
  int vain_ = 0;  // efforts
};

}  // namespace memplan::chain
