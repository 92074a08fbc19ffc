#include "published/telamalloc/collecting.h"

#include <algorithm>

#include "util/invariants.h"

namespace memplan {

CollectingPolicy::CollectingPolicy(const Problem& problem, const CollectOptions& options,
                                   Stopper& stopper)
    : problem_(problem), options_(options), stopper_(stopper), random_(options.seed) {
  if (options.model) learned_ = std::make_unique<LearnedPolicy>(*options.model);
}

int CollectingPolicy::choose(const Impasse& now) {
  if (oracle_ == nullptr || part_ != now.part) {
    part_ = now.part;
    records_.clear();
    oracle_ =
        std::make_unique<Oracle>(problem_, part_, now.capacity, options_.oracle_nodes, stopper_);
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
