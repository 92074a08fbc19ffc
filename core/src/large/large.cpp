#include "memplan/large.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "greedy/best_pass.h"
#include "large/core.h"
#include "large/course.h"
#include "large/lowering.h"
#include "large/part.h"
#include "large/ranking.h"
#include "large/windows.h"
#include "memplan/greedy.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// These orders follow the ranking by room (large/ranking.h), which alone plans most inputs at their
// load. The most promising comes first.
constexpr const char* kPassOrders[] = {"contention_length", "length",       "length_class_start",
                                       "room_length",       "size",         "load_class",
                                       "length_class_size", "peak_distance"};
constexpr const char* kBestFitOrders[] = {"room_length", "length", "contention_length"};
constexpr int kBumps = 2;

// These orders make good plans where no pass reaches the goal, beside the one on the skyline.
constexpr const char* kOpenBestFit[] = {"peak_distance", "contention", "length_class_start"};
constexpr const char* kOpenFirstFit[] = {"contention", "size"};

// What the first effort of ejection may spend on a goal.
constexpr std::int64_t kPerBuffer = 20;
constexpr std::int64_t kMostOfGoal = 10'000;
// An effort of a dozen goals leaves most nodes to the other stages.
constexpr std::int64_t kGoalsLeft = 64;

constexpr double kFirstRoom = 1;  // of the first core
constexpr double kWider = 1.5;    // where growing it does not help
constexpr int kCores = 60;
constexpr int kMostDeadEnds = 3;  // in a row
// Of the first search of a core: half a second.
constexpr std::int64_t kMostCoreLooks = 8'000'000'000;
constexpr std::int64_t kMostNodes = 1'000'000;
// For each buffer: what the cores of a goal take at most, and what they leave to the passes.
constexpr std::int64_t kNodesOfGoal = 50;
constexpr std::int64_t kNodesOfPasses = 2;
constexpr double kShells[] = {2, 4, 16};  // times the room of the core
constexpr int kCorePasses = 30;           // usually a few settle it, or none does
constexpr int kShellPasses = 3;

constexpr Bytes kHair = 1050;  // the least raise of the target is one part of so many
constexpr int kGoals = 12;     // after the target itself

// The chain for lifetimes alone.
//
// Nearly all networks have a plan at their load. So a stage asks for a plan at a goal, at first the
// lower bound, and gives up a pass that cannot have one. First fit by room and length plans three
// in four of them. What it rejects lies in sections that hardly have room, so the next stage places
// the buffers of these before all others (grow_core). Then come passes without a goal, so that
// there is a good plan to improve; ejection, which throws out and places again; the core at a goal
// slightly higher; other orders; and windows of time. If all of them miss the goal, the bound may
// be out of reach, and lower_goal moves the goal between what was missed and the best plan.
//
// No plan is below the target, which only rises, and only by a refuted core. A stage ends when its
// goal is reached or refuted, or the budget is spent: course_.round_over().
class Chain {
 public:
  // The first must outlive it.
  Chain(chain::Course& course, std::uint64_t seed)
      : course_(course),
        problem_(course.problem),
        sections_(course.sections),
        options_(course.options),
        seed_(seed),
        stopper_(course.stopper),
        windows_(problem_, sections_, seed, stopper_),
        lowering_(course, std::min(kMostOfGoal, kPerBuffer * problem_.count()), seed),
        ranking_(course.profile),
        everything_(problem_.size.size()) {
    std::iota(everything_.begin(), everything_.end(), 0);
  }

  void first_pass() {
    course_.pass(ranking_.sorted(everything_, stopper_), {}, Fit::kFirst,
                 "first fit by room and length");
  }

  void run() {
    if (options_.core) grow_core();
    if (options_.portfolio) make_open_passes();
    eject();
    if (options_.core) {
      // Where the core is too tight, a little more space is often enough, and all later stages then
      // have a good plan to beat.
      course_.goal = std::min(course_.limit, course_.target + course_.target / kHair);
      grow_core();
    }
    course_.goal = course_.target;
    if (options_.portfolio) try_orders();
    if (options_.windows) repair();
    lower_goal();
  }

 private:
  // Makes a pass, and then more of them, each with the rejected of the one before in front.
  void pass_and_bump(const char* name, Fit fit) {
    std::vector<BufferIdx> rows = course_.order(name);
    const std::string note =
        std::string(name) + (fit == Fit::kFirst ? ", first fit" : ", best fit");
    for (int k = 0; k <= (options_.bump ? kBumps : 0) && !course_.round_over(); ++k) {
      const Packing packing = course_.pass(rows, {}, fit, note);
      if (!packing.ended || packing.rejected.empty()) return;
      chain::bump(packing.rejected, &rows);
    }
  }

  void make_open_passes() {
    if (!course_.enough()) course_.skyline_pass(course_.order("tela"), "tela, skyline");
    for (const char* name : kOpenBestFit) {
      if (options_.best_fit && !course_.enough()) {
        course_.open_pass(course_.order(name), Fit::kBest, std::string(name) + ", best fit");
      }
    }
    for (const char* name : kOpenFirstFit) {
      if (!course_.enough()) {
        course_.open_pass(course_.order(name), Fit::kFirst, std::string(name) + ", first fit");
      }
    }
  }

  void eject() {
    if (!options_.ejection || !course_.plan.has_offsets()) return;
    if (!lowering_.tired() && !course_.enough()) lowering_.effort(course_.nodes_left / kGoalsLeft);
  }

  void try_orders() {
    for (const char* name : kPassOrders) {
      if (!course_.round_over()) pass_and_bump(name, Fit::kFirst);
    }
    for (const char* name : kBestFitOrders) {
      if (options_.best_fit && !course_.round_over()) pass_and_bump(name, Fit::kBest);
    }
  }

  // The critical core is placed first, as a problem of its own.
  //
  //     address                       core         c: live in a hard section
  //       |   s    ccccc|ccccc  s     shell        s: room a few times that of the core
  //       |  sss  cccccc|cccccc  sss  rest         .: everything else
  //       | ......ccccccccccccc......
  //       +-------------|------------ time
  //                hard section
  //
  // Buffers that are live in a section without room have almost no choice; the others have some. So
  // each turn places the core by first fit, or else by the exact search, and the others around it
  // by first fit. A buffer that finds no place had no choice either, and joins the core. If none is
  // new, or two cores in a row found no place, more sections count as hard.
  //
  // A core has all constraints of its buffers. So if the search refutes it, no plan of the whole
  // reaches the goal, and the target rises.
  void grow_core() {
    if (course_.round_over()) return;
    const std::vector<double> room = chain::rooms(problem_, sections_, course_.goal);
    chain::Core core(problem_, sections_, room);
    double width = kFirstRoom;
    core.widen(width);
    int dead_ends = 0;
    const std::int64_t for_passes = kNodesOfPasses * problem_.count();
    const std::int64_t nodes_to_keep =
        std::max(for_passes, course_.nodes_left - kNodesOfGoal * problem_.count());
    const auto over = [&] {
      return dead_ends > kMostDeadEnds || course_.nodes_left <= nodes_to_keep ||
             course_.round_over();
    };
    for (int k = 0; k < kCores && !over(); ++k) {
      const chain::Part part = chain::take_part(problem_, core.members());
      const std::int64_t nodes = std::min(kMostNodes, course_.nodes_left - for_passes);
      const chain::Patience patience{options_.promote ? kCorePasses : 1,
                                     times(kPatience, course_.fastest()), nodes};
      const chain::PlacedCore placed =
          chain::place_core(part, course_.goal, patience, {kMostCoreLooks >> dead_ends, nodes},
                            seed_ + static_cast<std::uint64_t>(k), &ranking_, stopper_);
      if (placed.refuted) {
        MEMPLAN_ASSERT(course_.goal + 1 > course_.target || options_.target > 0);  // it rises
        MEMPLAN_ASSERT(!course_.reached(course_.goal));
        course_.plan.lower_bound = course_.target = course_.goal + 1;
      }
      course_.spend("core", placed.nodes,
                    placed.refuted ? Status::kInfeasible
                    : placed.whole ? Status::kFeasible
                                   : Status::kUnknown);
      ++course_.plan.stats.restarts;
      if (placed.refuted) return;
      dead_ends = placed.whole ? 0 : dead_ends + 1;
      std::vector<Bytes> fixed(problem_.size.size(), kNoOffset);
      for (std::size_t i = 0; i < part.rows.size(); ++i) fixed[part.rows[i]] = placed.offsets[i];
      const std::vector<BufferIdx> rejected = place_around(core, width, fixed);
      if (!core.grow(rejected) || dead_ends > 1) core.widen(width *= kWider);
    }
  }

  // The target may be out of reach. So this moves the goal half-way from the last one that was
  // missed to the best plan, again and again. `refused` is below the best plan: the last goal that
  // was missed, or the target.
  void lower_goal() {
    Bytes refused = course_.target;
    for (int round = 0; round < kGoals && !course_.enough(); ++round) {
      eject();
      if (course_.enough()) return;
      if (course_.plan.has_offsets() && course_.plan.peak <= refused) refused = course_.target;
      course_.goal =
          course_.plan.has_offsets() ? refused + (course_.plan.peak - refused) / 2 : course_.limit;
      if (!course_.plan.has_offsets() && options_.portfolio) try_orders();
      seed_ += kCores;
      if (options_.core) grow_core();
      if (options_.windows) repair();
      if (course_.reached(course_.goal)) continue;
      refused = std::max(course_.goal, course_.target);
      const bool close = course_.plan.peak - refused <= course_.target / chain::kFinest;
      if (close || !course_.plan.has_offsets()) refused = course_.target;
    }
  }

  // Places the rest by first fit: first in shells around the core, which are cheap and show most of
  // what will find no place, then all. Returns the first rejected buffers.
  std::vector<BufferIdx> place_around(chain::Core core, double width,
                                      const std::vector<Bytes>& fixed) {
    const std::string note =
        "first fit around a core of " +
        std::to_string(std::count_if(fixed.begin(), fixed.end(),
                                     [](Bytes offset) { return offset != kNoOffset; })) +
        " buffers";
    for (const double factor : kShells) {
      if (!options_.shells) break;
      if (course_.round_over()) return {};
      core.widen(factor * width);
      const chain::Part shell = chain::take_part(problem_, core.members());
      if (shell.rows.size() > everything_.size() / 3) break;
      const chain::Patience patience{options_.promote ? kShellPasses : 1, course_.fastest(),
                                     course_.nodes_left};
      Packing packing =
          chain::PartPacker(shell, stopper_).pack(fixed, course_.goal, patience, &ranking_);
      course_.spend("shell", packing.nodes,
                    packing.rejected.empty() ? Status::kFeasible : Status::kUnknown);
      ++course_.plan.stats.restarts;
      if (!packing.rejected.empty()) return std::move(packing.rejected);
    }
    if (course_.round_over()) return {};
    return course_.pass(ranking_.sorted(everything_, stopper_), fixed, Fit::kFirst, note).rejected;
  }

  // Takes what lies above the goal out of the best plan, and places it elsewhere.
  void repair() {
    if (!course_.plan.has_offsets() || course_.round_over()) return;
    std::vector<Bytes> offsets = course_.plan.offsets;
    std::vector<BufferIdx> rejected;
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      const bool above = offsets[b] + problem_.size[b] > course_.goal;
      if (!above || problem_.pin_of(b) != kNoOffset) continue;
      offsets[b] = kNoOffset;
      rejected.push_back(b);
    }
    const std::int64_t before = windows_.nodes();
    const bool any = windows_.insert(course_.goal, course_.nodes_left, &offsets, &rejected);
    course_.spend("windows", windows_.nodes() - before,
                  rejected.empty() ? Status::kFeasible : Status::kUnknown);
    if (any) course_.pass(rejected, offsets, Fit::kFirst, "windows placed again");
  }

  chain::Course& course_;
  const Problem& problem_;
  const Sections& sections_;
  const LargeOptions& options_;
  std::uint64_t seed_;
  Stopper& stopper_;
  chain::Windows windows_;
  chain::Lowering lowering_;
  chain::Ranking ranking_;
  std::vector<BufferIdx> everything_;
};

// ---- The chain where buffers conflict beyond their lifetimes, or are in contiguous groups.

// The orders of publications come first (SOMAS, section 5.2), then those that win without
// conflicts.
constexpr const char* kRelatedOrders[] = {
    "breadth",  "size",       "conflicts", "length_class_start",
    "lifetime", "contention", "area",      "length_class_size"};
constexpr int kRelatedBumps = 10;
constexpr std::int64_t kWheelNodes = 300;  // for each buffer

// The patience is greater here: a pass by size looks at ten times as many neighbours as one by
// length, and is as good.
constexpr std::int64_t kRelatedPassPatience = 32;

constexpr std::int64_t kFirstNodes = 10'000;  // of ejection, for a goal

// Tries all orders in turn, and bumps those that reject few and those that reject many alike, since
// only later rounds show which is better.
void try_orders(chain::Course& course) {
  struct Try {
    std::vector<BufferIdx> rows;
    Fit fit;
    std::string note;
    bool over = false;
  };
  std::vector<Try> tries;
  for (const char* name : kRelatedOrders) {
    tries.push_back({course.order(name), Fit::kFirst, std::string(name) + ", first fit"});
    if (!course.options.best_fit) continue;
    tries.push_back({tries.back().rows, Fit::kBest, std::string(name) + ", best fit"});
  }
  for (int k = 0; k <= (course.options.bump ? kRelatedBumps : 0); ++k) {
    for (Try& next : tries) {
      if (course.round_over()) return;
      if (next.over) continue;
      const Packing packing = course.pass(next.rows, {}, next.fit, next.note);
      next.over = !packing.ended || packing.rejected.empty();
      chain::bump(packing.rejected, &next.rows);
    }
  }
}

// The wheel reaches its target or finds nothing, so it must leave most of the budget to the stages
// that improve a plan step by step.
void insist(chain::Course& course, std::uint64_t seed) {
  const std::int64_t nodes = std::min(kWheelNodes * course.problem.count(), course.nodes_left / 4);
  const Plan plan =
      skyline_wheel(course.problem, course.sections, course.goal, nodes, seed, course.stopper);
  course.plan.stats.restarts += plan.stats.restarts;
  if (plan.has_offsets()) course.take(plan.offsets, plan.peak, plan.stats.note);
  course.spend("skyline", plan.stats.nodes, plan.status,
               plan.stats.nodes >= nodes ? "nodes" : "end");
}

// Cores and windows are parts of the time. What they leave in place bars addresses to buffers that
// share no section with it, and groups reach beyond them. So this chain has passes, and a repair
// that does not depend on time.
// Passes make a plan, and ejection lowers its peak goal by goal until it is tired: the best plan
// only gets better, and nothing is refuted here.
void run_related(chain::Course& course, std::uint64_t seed) {
  course.patience = kRelatedPassPatience;
  if (course.options.portfolio) try_orders(course);
  if (course.options.portfolio && course.options.bump && !course.enough()) insist(course, seed);
  if (!course.options.ejection || !course.plan.has_offsets()) return;
  chain::Lowering lowering(course, kFirstNodes, seed);
  while (!lowering.tired() && !course.enough()) lowering.effort(course.nodes_left);
}

}  // namespace

Plan large(const Problem& problem, const Sections& sections, const LargeOptions& options,
           std::int64_t node_budget, std::uint64_t seed, Stopper& stopper,
           const std::function<void(const Plan&)>& improved, const Tracer& trace) {
  chain::Course course(problem, sections, options, node_budget, stopper, improved, trace);
  Chain chain(course, seed);
  chain.first_pass();
  if (problem.conflicts.empty() && problem.group.empty()) {
    chain.run();
  } else {
    run_related(course, seed);
  }
  course.plan.stats.solver = "large";
  if (course.plan.has_offsets() && course.plan.peak > course.limit) {
    course.plan.status = Status::kUnknown;
    course.plan.offsets.clear();
    course.plan.peak = 0;
  }
  course.plan.stats.interrupted = stopper.interrupted();
  return std::move(course.plan);
}

}  // namespace memplan
