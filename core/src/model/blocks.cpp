#include "model/blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "util/invariants.h"
#include "util/ranked.h"

namespace memplan {

Blocks::Blocks(const Problem& problem) : problem_(problem) {
  if (problem.group.empty()) return;
  block_of_.assign(problem.size.size(), kNoGroup);
  const std::vector<Ranked> by_group =
      ranked(problem.group.size(), [&problem](BufferIdx b) { return problem.group[b]; });
  for (const auto& [group, b] : by_group) {
    if (group == kNoGroup) continue;
    const bool fresh = members_.empty() || problem.group[members_.back()] != group;
    if (fresh) blocks_.push_back({static_cast<std::int32_t>(members_.size()), 0, b, kMaxBytes, 0});
    members_.push_back(b);
    Block& block = blocks_.back();
    block.end = static_cast<std::int32_t>(members_.size());
    if (problem.alignment_of(b) > problem.alignment_of(block.strictest)) block.strictest = b;
    block.lower = std::min(block.lower, problem.lead[b]);
    const bool far = problem.size[b] > kMaxBytes - problem.lead[b];
    block.upper = std::max(block.upper, far ? kMaxBytes + 1 : problem.lead[b] + problem.size[b]);
    block_of_[b] = static_cast<std::int32_t>(blocks_.size()) - 1;
  }
}

bool Blocks::check_invariants() const {
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    const Block& block = blocks_[k];
    MEMPLAN_ASSERT(block.begin < block.end);
    MEMPLAN_ASSERT(block.begin == (k == 0 ? 0 : blocks_[k - 1].end));
    for (std::int32_t i = block.begin; i < block.end; ++i) {
      const BufferIdx b = members_[i];
      MEMPLAN_ASSERT(block_of_[b] == static_cast<std::int32_t>(k));
      MEMPLAN_ASSERT(block.lower <= problem_.lead[b] && problem_.lead[b] <= block.upper);
      MEMPLAN_ASSERT(problem_.alignment_of(block.strictest) % problem_.alignment_of(b) == 0);
    }
  }
  MEMPLAN_ASSERT(blocks_.empty() ||
                 blocks_.back().end == static_cast<std::int32_t>(members_.size()));
  return true;
}

Shape Blocks::shape(BufferIdx b) const {
  const std::int32_t at = block_of_.empty() ? kNoGroup : block_of_[b];
  if (at == kNoGroup) return {0, problem_.size[b], problem_.alignment_of(b), 0};
  const Block& block = blocks_[at];
  const Bytes lead = problem_.lead[b];
  const bool far = block.upper - block.lower > kMaxBytes;
  MEMPLAN_ASSERT(block.lower <= lead && lead <= block.upper);
  return {lead - block.lower, far ? kMaxBytes + 1 : block.upper - lead,
          problem_.alignment_of(block.strictest), problem_.lead[block.strictest] - lead};
}

std::vector<BufferIdx> Blocks::firsts(const std::vector<BufferIdx>& order) const {
  std::vector<char> seen(blocks_.size(), 0);
  std::vector<BufferIdx> result;
  result.reserve(order.size());
  for (const BufferIdx b : order) {
    const std::int32_t block = block_of_.empty() ? kNoGroup : block_of_[b];
    if (block != kNoGroup && std::exchange(seen[block], char{1}) != 0) continue;
    result.push_back(b);
  }
  return result;
}

}  // namespace memplan
