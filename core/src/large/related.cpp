#include "large/related.h"

#include <algorithm>
#include <string>
#include <vector>

#include "large/ejection.h"
#include "large/ranking.h"
#include "memplan/greedy.h"
#include "model/items.h"
#include "util/invariants.h"

namespace memplan::chain {

namespace {

// First those that publications have (source 004, section 5.2), then those that win without
// conflicts.
constexpr const char* kOrders[] = {"breadth",  "size",       "conflicts", "length_class_start",
                                   "lifetime", "contention", "area",      "length_class_size"};
constexpr int kBumps = 10;
constexpr std::int64_t kWheelNodes = 300;  // for each buffer

// A pass by size looks at ten times as many neighbours as one by length, and is as good.
constexpr std::int64_t kRelatedPatience = 32;

// The first searches by ejection, in nodes. Where all goals are tried in vain, twice as many; that
// often.
constexpr std::int64_t kFirstNodes = 10'000;
constexpr int kMostEfforts = 5;
constexpr Bytes kFinest = 10'000;  // steps to a target: closer to a peak than one is not asked

// All in turn, and those that reject few or many are bumped alike: it is the later rounds that
// tell them apart.
void try_orders(Course& course) {
  struct Try {
    std::vector<BufferIdx> rows;
    Fit fit;
    std::string note;
    bool over = false;
  };
  std::vector<Try> tries;
  for (const char* name : kOrders) {
    tries.push_back({course.order(name), Fit::kFirst, std::string(name) + ", first fit"});
    if (!course.options.best_fit) continue;
    tries.push_back({tries.back().rows, Fit::kBest, std::string(name) + ", best fit"});
  }
  for (int k = 0; k <= (course.options.bump ? kBumps : 0); ++k) {
    for (Try& next : tries) {
      if (course.round_over()) return;
      if (next.over) continue;
      const Packing packing = course.pass(next.rows, {}, next.fit, next.note);
      next.over = !packing.ended || packing.rejected.empty();
      bump(packing.rejected, &next.rows);
    }
  }
}

// Out of the best plan, all blocks that reach above the goal.
std::vector<BufferIdx> take_out(const Course& course, std::vector<Bytes>* offsets) {
  std::vector<BufferIdx> taken;
  for (BufferIdx b = 0; b < course.problem.count(); ++b) {
    const bool above = course.plan.offsets[b] + course.problem.size[b] > course.goal;
    if (!above || (*offsets)[b] == kNoOffset) continue;
    course.blocks().for_each(b, [&](BufferIdx member, Bytes) {
      (*offsets)[member] = kNoOffset;
      taken.push_back(member);
    });
  }
  return taken;
}

// Whether there is now a plan at or below the goal.
bool reach_goal(Course& course, std::int64_t nodes, Ejection* ejection) {
  std::vector<Bytes> offsets = course.plan.offsets;
  const std::vector<BufferIdx> rejected = take_out(course, &offsets);
  // A caller's target may be below what is pinned.
  const auto pinned = [&course](BufferIdx b) { return course.problem.pin_of(b) != kNoOffset; };
  if (std::any_of(rejected.begin(), rejected.end(), pinned)) return false;
  const std::int64_t before = ejection->nodes();
  const std::int64_t most = std::min(nodes, course.nodes_left);
  const bool done = ejection->insert(course.goal, most, &offsets, rejected);
  if (done) course.take(offsets, peak_of(course.problem, offsets), "ejection");
  const std::int64_t spent = ejection->nodes() - before;
  course.spend("ejection", spent, done ? Status::kFeasible : Status::kUnknown,
               spent >= most ? "nodes" : "end");
  ++course.plan.stats.restarts;
  return course.reached(course.goal);
}

// Half-way from what was not reached to the best plan, again and again, with more effort each time
// that all has been tried.
//
// It ends: a goal is below the best plan, so that each one reached lowers the peak, which does not
// pass the target. Between two of these, each one missed brings `refused` closer to the peak until
// they are next to each other, and so ends an effort, of which there are kMostEfforts.
void eject(Course& course, std::uint64_t seed) {
  Ejection ejection(course.problem, course.sections, seed, course.stopper);
  std::int64_t nodes = kFirstNodes;
  Bytes refused = course.target - 1;
  for (int effort = 0; effort < kMostEfforts && !course.enough();) {
    MEMPLAN_ASSERT(refused < course.plan.peak);
    course.goal = refused + (course.plan.peak - refused) / 2;
    if (reach_goal(course, nodes, &ejection)) {
      effort = 0;
    } else {
      refused = course.goal;
    }
    if (course.plan.peak - refused > 1 + course.target / kFinest) continue;
    refused = course.target - 1;
    nodes *= 2;
    ++effort;
  }
}

// All or nothing, so it must leave most of the budget to those who make a plan better bit by bit.
void insist(Course& course, std::uint64_t seed) {
  const std::int64_t nodes = std::min(kWheelNodes * course.problem.count(), course.nodes_left / 4);
  const Plan plan =
      skyline_wheel(course.problem, course.sections, course.goal, nodes, seed, course.stopper);
  course.plan.stats.restarts += plan.stats.restarts;
  if (plan.has_offsets()) course.take(plan.offsets, plan.peak, plan.stats.note);
  course.spend("skyline", plan.stats.nodes, plan.status,
               plan.stats.nodes >= nodes ? "nodes" : "end");
}

}  // namespace

void run_related(Course& course, std::uint64_t seed) {
  course.patience = kRelatedPatience;
  if (course.options.portfolio) try_orders(course);
  if (course.options.portfolio && course.options.bump && !course.enough()) insist(course, seed);
  if (course.options.ejection && course.plan.has_offsets()) eject(course, seed);
}

}  // namespace memplan::chain
