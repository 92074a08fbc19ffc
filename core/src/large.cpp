#include "memplan/large.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "greedy/orders.h"
#include "large/core.h"
#include "large/core_placer.h"
#include "large/packer.h"
#include "large/part.h"
#include "large/ranking.h"
#include "large/rooms.h"
#include "large/windows.h"
#include "memplan/bounds.h"

namespace memplan {

namespace {

using chain::Goal;
using chain::Packing;

// After the ranking by room (large/ranking.h), which alone plans most inputs at their load; the
// most promising first.
constexpr const char* kOrders[] = {"contention_length", "length",       "length_class_start",
                                   "room_length",       "size",         "load_class",
                                   "length_class_size", "peak_distance"};
constexpr const char* kBestFitOrders[] = {"room_length", "length", "contention_length"};

// A pass is given up at so many times the work of the fastest one: some orders fragment badly.
constexpr std::int64_t kPatience = 4;
constexpr std::int64_t kBestFitPatience = 32;
constexpr int kBumps = 2;

constexpr double kFirstRoom = 1;  // of the first core
constexpr double kWider = 1.5;    // where growing it does not help
constexpr int kCores = 60;
constexpr int kMostDeadEnds = 3;                     // in a row
constexpr std::int64_t kMostLooks = 11'000'000'000;  // of one search of a core: a few seconds
constexpr std::int64_t kMostNodes = 1'000'000;
constexpr double kShells[] = {2, 4, 16};  // times the room of the core
constexpr int kCorePasses = 30;           // usually a few settle it, or none does
constexpr int kShellPasses = 3;

constexpr Bytes kHair = 1050;      // the least raise of the target is one part of so many
constexpr int kGoals = 12;         // after the target itself
constexpr Bytes kFinest = 10'000;  // steps to a target: closer to a peak than one is not asked

constexpr std::int64_t kNoLimit = INT64_MAX;

class Chain {
 public:
  Chain(const Problem& problem, const Sections& sections, const LargeOptions& options,
        std::int64_t node_budget, std::uint64_t seed, Stopper& stopper,
        const std::function<void(const Plan&)>& improved)
      : problem_(problem),
        sections_(sections),
        options_(options),
        nodes_left_(node_budget),
        seed_(seed),
        stopper_(stopper),
        improved_(improved),
        profile_(problem, sections, stopper),
        packer_(problem, sections, stopper),
        windows_(problem, sections, seed, stopper),
        ranking_(profile_),
        everything_(problem.size.size()) {
    std::iota(everything_.begin(), everything_.end(), 0);
    target_ = options.target > 0 ? options.target : lower_bound(problem, sections).bytes;
    if (problem.capacity) {
      limit_ = std::min(limit_, *problem.capacity);
      target_ = std::min(target_, limit_);
    }
  }

  Plan run() {
    goal_ = target_;
    pass(ranking_.sorted(everything_, stopper_), {}, Fit::kFirst, "first fit by room and length");
    if (options_.core) {
      grow_core();
      // Where the core is too tight, a hair's breadth more often does it, and all that follows
      // has a good plan to beat.
      goal_ = std::min(limit_, target_ + target_ / kHair);
      grow_core();
      goal_ = target_;
    }
    if (options_.portfolio) try_orders();
    if (options_.windows) repair();
    lower_goal();
    plan_.stats.solver = "large";
    plan_.stats.interrupted = stopper_.interrupted();
    return std::move(plan_);
  }

 private:
  // No plan can be better, or there is nothing left to spend.
  bool enough() {
    return reached(target_) || target_ > limit_ || nodes_left_ <= 0 || stopper_.look();
  }
  bool reached(Bytes peak) const { return plan_.has_offsets() && plan_.peak <= peak; }
  bool round_over() { return reached(goal_) || target_ > goal_ || enough(); }

  std::vector<BufferIdx> order(const std::string& name) {
    const auto found = std::find_if(orders().begin(), orders().end(),
                                    [&name](const Order& o) { return name == o.name; });
    return sorted(found->key, profile_, stopper_);
  }

  void spend(std::int64_t nodes) {
    plan_.stats.nodes += nodes;
    nodes_left_ -= nodes;
  }

  // One pass below the goal of this round; a plan, if that is better than the best so far.
  Packing pass(const std::vector<BufferIdx>& order, const std::vector<Bytes>& fixed, Fit fit,
               const std::string& note) {
    std::int64_t& fastest = fit == Fit::kFirst ? fastest_ : fastest_best_fit_;
    Goal goal;
    goal.target = goal_;
    goal.limit = plan_.has_offsets() ? plan_.peak - 1 : limit_;
    goal.nodes = nodes_left_;
    goal.steps = times(kPatience, fastest);
    if (fit == Fit::kBest && fastest == kNoLimit) goal.steps = times(kBestFitPatience, fastest_);
    Packing packing = packer_.pack(order, fixed, fit, goal);
    ++plan_.stats.restarts;
    spend(packing.nodes);
    if (packing.ended) fastest = std::min(fastest, std::max<std::int64_t>(1, packing.steps));
    if (packing.complete) take(packing.offsets, packing.peak, note);
    return packing;
  }

  // And again with the rejected in front.
  void pass_and_bump(const char* name, Fit fit) {
    std::vector<BufferIdx> rows = order(name);
    const std::string note =
        std::string(name) + (fit == Fit::kFirst ? ", first fit" : ", best fit");
    for (int k = 0; k <= (options_.bump ? kBumps : 0) && !round_over(); ++k) {
      const Packing packing = pass(rows, {}, fit, note);
      if (!packing.ended || packing.rejected.empty()) return;
      chain::bump(packing.rejected, &rows);
    }
  }

  static std::int64_t times(std::int64_t factor, std::int64_t steps) {
    return steps > kNoLimit / factor ? kNoLimit : factor * steps;
  }

  void take(const std::vector<Bytes>& offsets, Bytes peak, const std::string& note) {
    if (plan_.has_offsets() && peak >= plan_.peak) return;
    plan_.status = Status::kFeasible;
    plan_.offsets = offsets;
    plan_.peak = peak;
    plan_.stats.note = note;
    if (improved_) improved_(plan_);
  }

  void try_orders() {
    for (const char* name : kOrders) {
      if (!round_over()) pass_and_bump(name, Fit::kFirst);
    }
    for (const char* name : kBestFitOrders) {
      if (options_.best_fit && !round_over()) pass_and_bump(name, Fit::kBest);
    }
  }

  // The buffers without freedom first, then the others around them. Those that find no place join
  // the core.
  void grow_core() {
    if (round_over()) return;
    const std::vector<double> room = chain::rooms(problem_, sections_, goal_);
    chain::Core core(problem_, sections_, room);
    double width = kFirstRoom;
    core.widen(width);
    int dead_ends = 0;
    for (int k = 0; k < kCores && dead_ends <= kMostDeadEnds && !round_over(); ++k) {
      const chain::Part part = chain::take_part(problem_, core.members());
      const std::int64_t nodes = std::min(kMostNodes, nodes_left_);
      const chain::Patience patience{options_.promote ? kCorePasses : 1, times(kPatience, fastest_),
                                     nodes};
      const chain::PlacedCore placed =
          chain::place_core(part, goal_, patience, {kMostLooks, nodes},
                            seed_ + static_cast<std::uint64_t>(k), &ranking_, stopper_);
      spend(placed.nodes);
      ++plan_.stats.restarts;
      if (placed.refuted) {
        plan_.lower_bound = target_ = goal_ + 1;
        return;
      }
      dead_ends = placed.whole ? 0 : dead_ends + 1;
      std::vector<Bytes> fixed(problem_.size.size(), kNoOffset);
      for (std::size_t i = 0; i < part.rows.size(); ++i) fixed[part.rows[i]] = placed.offsets[i];
      const std::vector<BufferIdx> rejected = place_around(core, width, fixed);
      if (!core.grow(rejected) || dead_ends > 1) core.widen(width *= kWider);
    }
  }

  // The target may be out of reach. Asks for less: half-way from what was refused last to the best
  // plan, and so on.
  void lower_goal() {
    Bytes refused = target_;
    for (int round = 0; round < kGoals && !enough(); ++round) {
      goal_ = plan_.has_offsets() ? refused + (plan_.peak - refused) / 2 : limit_;
      if (!plan_.has_offsets() && options_.portfolio) try_orders();
      seed_ += kCores;
      if (options_.core) grow_core();
      if (options_.windows) repair();
      if (reached(goal_)) continue;
      refused = std::max(goal_, target_);
      if (!plan_.has_offsets() || plan_.peak - refused <= target_ / kFinest) refused = target_;
    }
  }

  // First fit of the rest: first in shells around the core, which are cheap and show most of what
  // will find no place, then all. Returns the first rejected that turn up.
  std::vector<BufferIdx> place_around(chain::Core core, double width,
                                      const std::vector<Bytes>& fixed) {
    const std::string note =
        "first fit around a core of " +
        std::to_string(std::count_if(fixed.begin(), fixed.end(),
                                     [](Bytes offset) { return offset != kNoOffset; })) +
        " buffers";
    for (const double factor : kShells) {
      if (!options_.shells) break;
      if (round_over()) return {};
      core.widen(factor * width);
      const chain::Part shell = chain::take_part(problem_, core.members());
      if (shell.rows.size() > everything_.size() / 3) break;
      const chain::Patience patience{options_.promote ? kShellPasses : 1, fastest_, nodes_left_};
      Packing packing = chain::PartPacker(shell, stopper_).pack(fixed, goal_, patience, &ranking_);
      spend(packing.nodes);
      ++plan_.stats.restarts;
      if (!packing.rejected.empty()) return std::move(packing.rejected);
    }
    if (round_over()) return {};
    return pass(ranking_.sorted(everything_, stopper_), fixed, Fit::kFirst, note).rejected;
  }

  // Takes out of the best plan what lies above the goal, and puts it in elsewhere.
  void repair() {
    if (!plan_.has_offsets() || round_over()) return;
    std::vector<Bytes> offsets = plan_.offsets;
    std::vector<BufferIdx> rejected;
    for (BufferIdx b = 0; b < problem_.count(); ++b) {
      if (offsets[b] + problem_.size[b] <= goal_ || problem_.pin_of(b) != kNoOffset) continue;
      offsets[b] = kNoOffset;
      rejected.push_back(b);
    }
    const std::int64_t before = windows_.nodes();
    const bool any = windows_.insert(goal_, nodes_left_, &offsets, &rejected);
    spend(windows_.nodes() - before);
    if (any) pass(rejected, offsets, Fit::kFirst, "windows placed anew");
  }

  const Problem& problem_;
  const Sections& sections_;
  const LargeOptions& options_;
  std::int64_t nodes_left_;
  std::uint64_t seed_;
  Stopper& stopper_;
  const std::function<void(const Plan&)>& improved_;
  Profile profile_;
  chain::Packer packer_;
  chain::Windows windows_;
  chain::Ranking ranking_;
  std::vector<BufferIdx> everything_;
  Bytes target_ = 0;  // rises where a core is refuted
  Bytes goal_ = 0;    // of this round, at or above the target
  Bytes limit_ = kMaxBytes;
  std::int64_t fastest_ = kNoLimit;
  std::int64_t fastest_best_fit_ = kNoLimit;
  Plan plan_;
};

}  // namespace

Plan large(const Problem& problem, const Sections& sections, const LargeOptions& options,
           std::int64_t node_budget, std::uint64_t seed, Stopper& stopper,
           const std::function<void(const Plan&)>& improved) {
  return Chain(problem, sections, options, node_budget, seed, stopper, improved).run();
}

}  // namespace memplan
