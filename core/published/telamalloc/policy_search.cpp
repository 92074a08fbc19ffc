#include "published/telamalloc/policy_search.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "util/failure.h"
#include "util/invariants.h"

namespace memplan {

PolicySearch::PolicySearch(const Problem& problem, const Items& items, const Adjacency& adjacent,
                           const TelamallocOptions& options, Stopper& stopper)
    : items_(items),
      policy_(*options.policy),
      stopper_(stopper),
      phases_(make_phases(problem, items, adjacent, options.subproblems, false)),
      ranges_(items, adjacent, stopper),
      culprits_(items, ranges_),
      item_of_(problem.size.size(), kNoItem),
      has_failed_(items.size.size(), 0) {
  for (ItemIdx i = 0; i < items.count(); ++i) item_of_[items.buffer[i]] = i;
  // An item that conflicts with none lies as low as it can, without a search.
  steps_ = items.count() - static_cast<std::int64_t>(phases_.items.size());
}

std::vector<ItemIdx> PolicySearch::refutation() {
  culprits_.of_dead_end();
  return culprits_.involved();
}

PolicySearch::Verdict PolicySearch::run(const Phases::Subproblem& part, std::int64_t limit) {
  base_ = ranges_.levels();
  path_.clear();
  points_.assign(static_cast<std::size_t>(part.size()) + 1, {});
  const Verdict verdict = search(part, limit);
  if (verdict != Verdict::kSolved && !path_.empty()) ranges_.take_back(base_);
  return verdict;
}

PolicySearch::Verdict PolicySearch::search(const Phases::Subproblem& part, std::int64_t limit) {
  while (depth() < part.size()) {
    // The clock is read each time, as a policy may take long.
    if (steps_ >= limit || stopper_.look()) return Verdict::kCutShort;
    list_candidates(part);
    Bytes offset = 0;
    const ItemIdx i = candidates_.empty() ? kNoItem : ask(&offset);
    if (i != kNoItem) {
      advance(i, offset);
    } else if (!go_back()) {
      return Verdict::kExhausted;
    }
  }
  return Verdict::kSolved;
}

void PolicySearch::list_candidates(const Phases::Subproblem& part) {
  const std::vector<BufferIdx>& failed = points_[depth()].failed;
  for (const BufferIdx b : failed) has_failed_[item_of_[b]] = 1;
  candidates_.clear();
  for (std::int32_t k = part.begin; k < part.end; ++k) {
    const ItemIdx i = phases_.items[k];
    if (ranges_.placed(i) || has_failed_[i] != 0) continue;
    MEMPLAN_ASSERT(candidates_.empty() || candidates_.back().buffer < items_.buffer[i]);
    candidates_.push_back({items_.buffer[i], ranges_.lower(i), ranges_.upper(i)});
  }
  for (const BufferIdx b : failed) has_failed_[item_of_[b]] = 0;
}

SearchState PolicySearch::state() const {
  const Point& point = points_[depth()];
  return {items_.capacity, path_, candidates_, point.failed, point.culprits};
}

// The next block and its offset, or kNoItem where the policy gives the point up.
ItemIdx PolicySearch::ask(Bytes* offset) {
  const SearchPolicy::Choice choice = policy_.choose(state());
  if (choice.buffer == SearchPolicy::kNone) return kNoItem;
  const ValidRange& range = offered(choice);
  *offset = choice.offset == kNoOffset ? range.lower : choice.offset;
  const ItemIdx i = item_of_[choice.buffer];
  if (*offset < range.lower || *offset > range.upper) {
    fail("the policy chose offset " + std::to_string(*offset) + " for row " +
         std::to_string(choice.buffer) + ", which must be from " + std::to_string(range.lower) +
         " to " + std::to_string(range.upper) + ".");
  }
  if (items_.legal_above(i, *offset) != *offset) {
    fail("the policy chose offset " + std::to_string(*offset) + " for row " +
         std::to_string(choice.buffer) + ", which its alignment or a reserved range rules out.");
  }
  return i;
}

const ValidRange& PolicySearch::offered(const SearchPolicy::Choice& choice) const {
  const auto at =
      std::lower_bound(candidates_.begin(), candidates_.end(), choice.buffer,
                       [](const ValidRange& range, BufferIdx b) { return range.buffer < b; });
  if (at == candidates_.end() || at->buffer != choice.buffer) {
    fail("the policy chose row " + std::to_string(choice.buffer) +
         ", which is not among its candidates.");
  }
  return *at;
}

void PolicySearch::advance(ItemIdx i, Bytes offset) {
  ++steps_;
  const bool fits = ranges_.place(i, offset);
  if (fits) {
    path_.push_back({items_.buffer[i], offset});
    points_[depth()].failed.clear();
    points_[depth()].culprits.clear();
    return;
  }
  if (!stopper_.stopped()) {
    ++minor_;
    std::vector<std::int32_t> levels = culprits_.of_dead_end();
    for (std::int32_t& level : levels) level -= base_;
    MEMPLAN_ASSERT(levels.empty() || levels.front() >= 0);
    points_[depth()].failed.push_back(items_.buffer[i]);
    blame(levels);
  }
  ranges_.take_back(base_ + depth());
}

// Takes a major backtrack. Returns false if there is no level to go back to.
bool PolicySearch::go_back() {
  if (path_.empty()) return false;
  ++major_;
  const Point& failed = points_[depth()];
  const std::int32_t level = ask_level();
  points_[level].failed.push_back(path_[level].buffer);
  path_.resize(static_cast<std::size_t>(level));
  ranges_.take_back(base_ + level);
  blame(failed.culprits);
  return true;
}

std::int32_t PolicySearch::ask_level() {
  const std::int32_t level = policy_.go_back(state());
  if (level == SearchPolicy::kByRule) {
    const std::vector<std::int32_t>& culprits = points_[depth()].culprits;
    return culprits.empty() ? depth() - 1 : culprits.back();
  }
  if (level >= 0 && level < depth()) return level;
  fail("the policy went back to level " + std::to_string(level) + ", which must be from 0 to " +
       std::to_string(depth() - 1) + ".");
}

// The failure at this point follows from these levels, of which only those above it remain.
void PolicySearch::blame(const std::vector<std::int32_t>& levels) {
  std::vector<std::int32_t>& known = points_[depth()].culprits;
  merged_.clear();
  std::set_union(known.begin(), known.end(), levels.begin(),
                 std::lower_bound(levels.begin(), levels.end(), depth()),
                 std::back_inserter(merged_));
  known.swap(merged_);
}

}  // namespace memplan
