#include "published/telamalloc/collecting.h"

#include <algorithm>
#include <utility>

#include "model/subproblem.h"
#include "util/invariants.h"

namespace memplan {

namespace {

std::vector<BufferIdx> sorted(std::vector<BufferIdx> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

Oracle::Oracle(const Problem& problem, const std::vector<BufferIdx>& part, Bytes capacity,
               const CompleteSearch& complete, std::int64_t nodes, Stopper& stopper)
    : part_(sorted(part)),
      problem_(subproblem(problem, part_)),
      sections_(sweep(problem_)),
      capacity_(capacity),
      complete_(complete),
      nodes_(nodes),
      stopper_(stopper) {
  problem_.pin.resize(part.size(), kNoOffset);
  pins_ = problem_.pin;
  if (ask(0) != Answer::kSolvable) open_ = kPatience + 1;
}

std::optional<std::int32_t> Oracle::deepest_solvable(const std::vector<Placement>& path) {
  if (open_ > kPatience) return std::nullopt;
  keep_what_holds(path);

  // A solvable path stays solvable when its end is cut off, so a binary search finds the longest.
  std::int32_t end = std::min(dead_, static_cast<std::int32_t>(path.size()) + 1);
  while (end - solvable_ > 1) {
    const std::int32_t middle = solvable_ + (end - solvable_) / 2;
    const Answer answer = ask(middle);
    if (answer == Answer::kOpen) {
      ++open_;
      return std::nullopt;
    }
    if (answer == Answer::kSolvable) {
      solvable_ = middle;
    } else {
      end = dead_ = middle;
    }
  }
  MEMPLAN_ASSERT(solvable_ < dead_ && solvable_ <= static_cast<std::int32_t>(path.size()));
  return solvable_;
}

void Oracle::keep_what_holds(const std::vector<Placement>& path) {
  const auto differs = std::mismatch(path.begin(), path.end(), path_.begin(), path_.end());
  const auto common = static_cast<std::int32_t>(differs.first - path.begin());
  solvable_ = std::min(solvable_, common);
  if (dead_ > common) dead_ = kNone;
  path_ = path;
}

Oracle::Answer Oracle::ask(std::int32_t length) {
  problem_.pin = pins_;
  for (std::int32_t level = 0; level < length; ++level) {
    const auto row = std::lower_bound(part_.begin(), part_.end(), path_[level].buffer);
    MEMPLAN_ASSERT(row != part_.end() && *row == path_[level].buffer);
    problem_.pin[row - part_.begin()] = path_[level].offset;
  }
  const Plan plan = complete_(problem_, sections_, capacity_, nodes_, stopper_);
  if (plan.has_offsets()) return Answer::kSolvable;
  return plan.status == Status::kInfeasible ? Answer::kDead : Answer::kOpen;
}

CollectingPolicy::CollectingPolicy(const Problem& problem, const CollectOptions& options,
                                   Stopper& stopper)
    : problem_(problem), options_(options), stopper_(stopper), random_(options.seed) {
  if (options.model) learned_ = std::make_unique<LearnedPolicy>(*options.model);
}

int CollectingPolicy::choose(const Impasse& now) {
  if (oracle_ == nullptr || part_ != now.part) {
    part_ = now.part;
    records_.clear();
    oracle_ = std::make_unique<Oracle>(problem_, part_, now.capacity, options_.oracle,
                                       options_.oracle_nodes, stopper_);
  }
  // Drawn also where it is of no use, so that one open question does not change all later draws.
  const bool follow = static_cast<double>(random_.below(1'000'000)) < 1e6 * options_.oracle_share;
  const std::optional<std::int32_t> solvable = oracle_->deepest_solvable(now.path);
  if (!solvable) return otherwise(now);
  records_.push_back({now.path, now.targets, *solvable});
  if (!follow) return otherwise(now);
  const auto minimum =
      std::find_if(now.targets.begin(), now.targets.end(),
                   [&](const BacktrackTarget& target) { return target.level <= *solvable; });
  if (minimum == now.targets.end()) return otherwise(now);
  return static_cast<int>(minimum - now.targets.begin());
}

int CollectingPolicy::otherwise(const Impasse& now) {
  return learned_ ? learned_->choose(now) : kByRule;
}

void CollectingPolicy::solved(const std::vector<BufferIdx>& part,
                              const std::vector<Placement>& path) {
  if (part != part_) return;  // it had no backtracks
  for (const Record& record : records_) {
    const auto differs =
        std::mismatch(record.path.begin(), record.path.end(), path.begin(), path.end());
    add(record, static_cast<std::int32_t>(differs.first - record.path.begin()));
  }
  records_.clear();
}

void CollectingPolicy::add(const Record& record, std::int32_t shared) {
  const auto impasse = static_cast<std::int32_t>(samples_.length.size());
  for (const BacktrackTarget& target : record.targets) {
    samples_.features.insert(samples_.features.end(), target.features.begin(),
                             target.features.end());
    samples_.level.push_back(target.level);
    samples_.impasse.push_back(impasse);
  }
  MEMPLAN_ASSERT(samples_.features.size() == samples_.level.size() * kBacktrackFeatures);
  MEMPLAN_ASSERT(record.solvable <= static_cast<std::int32_t>(record.path.size()));
  samples_.length.push_back(static_cast<std::int32_t>(record.path.size()));
  samples_.solvable.push_back(record.solvable);
  samples_.shared.push_back(shared);
}

}  // namespace memplan
