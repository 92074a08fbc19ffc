#include "large/lowering.h"

#include <algorithm>

#include "model/items.h"
#include "util/invariants.h"

namespace memplan::chain {

namespace {

constexpr Bytes kLonger = 8;     // the first step of an effort, in last ones of the one before
constexpr int kMostEfforts = 5;  // in vain, since twice the nodes find a little more each time

}  // namespace

bool Lowering::tired() const { return vain_ >= kMostEfforts; }

// A goal is a step below the peak. The step doubles with each goal that is reached and halves with
// each one that is missed, so that it soon has the length that the search can take.
void Lowering::effort(std::int64_t most) {
  MEMPLAN_ASSERT(course_.plan.has_offsets());
  if (ejection_ == nullptr) {
    ejection_ =
        std::make_unique<Ejection>(course_.problem, course_.sections, seed_, course_.stopper);
  }
  const Bytes finest = 1 + course_.target / kFinest;
  bool any = false;
  while (!course_.enough()) {
    step_ = std::min(step_, course_.plan.peak - course_.target);
    course_.goal = course_.plan.peak - step_;
    if (reach_goal(std::min(nodes_, most))) {
      any = true;
      step_ *= 2;  // the next goal is not below the target
    } else if (step_ > finest) {
      step_ = std::max(finest, step_ / 2);
    } else {
      break;
    }
  }
  step_ = kLonger * std::min(step_, kMaxBytes / kLonger);
  if (any) return;
  ++vain_;
  nodes_ *= 2;
}

// Takes all blocks that reach above the goal out of the best plan.
std::vector<BufferIdx> Lowering::take_out(std::vector<Bytes>* offsets) const {
  std::vector<BufferIdx> taken;
  for (BufferIdx b = 0; b < course_.problem.count(); ++b) {
    const bool above = course_.plan.offsets[b] + course_.problem.size[b] > course_.goal;
    if (!above || (*offsets)[b] == kNoOffset) continue;
    course_.blocks().for_each(b, [&](BufferIdx member, Bytes) {
      (*offsets)[member] = kNoOffset;
      taken.push_back(member);
    });
  }
  return taken;
}

bool Lowering::reach_goal(std::int64_t nodes) {
  std::vector<Bytes> offsets = course_.plan.offsets;
  const std::vector<BufferIdx> rejected = take_out(&offsets);
  // A caller's target may be below what is pinned.
  const auto pinned = [this](BufferIdx b) { return course_.problem.pin_of(b) != kNoOffset; };
  if (std::any_of(rejected.begin(), rejected.end(), pinned)) return false;
  const std::int64_t before = ejection_->nodes();
  const std::int64_t most = std::min(nodes, course_.nodes_left);
  const bool done = ejection_->insert(course_.goal, most, &offsets, rejected);
  if (done) course_.take(offsets, peak_of(course_.problem, offsets), "ejection");
  const std::int64_t spent = ejection_->nodes() - before;
  course_.spend("ejection", spent, done ? Status::kFeasible : Status::kUnknown,
                spent >= most ? "nodes" : "end");
  ++course_.plan.stats.restarts;
  return course_.reached(course_.goal);
}

}  // namespace memplan::chain
