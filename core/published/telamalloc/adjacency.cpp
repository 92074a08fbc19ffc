#include "published/telamalloc/adjacency.h"

#include <algorithm>

#include "model/meetings.h"
#include "util/invariants.h"

namespace memplan {

namespace {

// 128 MiB, and about three times as much for what the trail has of each pair: 5 793 buffers that
// all overlap.
constexpr std::int64_t kMaxNeighbours = std::int64_t{1} << 24;

// A pair of items whose spans meet more than once is one pair.
void merge_repeats(Adjacency* rows) {
  std::int64_t kept = 0;
  for (std::size_t i = 0; i + 1 < rows->begin.size(); ++i) {
    ItemIdx* const all = rows->other.data();
    ItemIdx* const begin = all + rows->begin[i];
    ItemIdx* const end = all + rows->begin[i + 1];
    std::sort(begin, end);
    rows->begin[i] = kept;
    kept = std::copy(begin, std::unique(begin, end), all + kept) - all;
  }
  rows->begin.back() = kept;
  rows->other.resize(static_cast<std::size_t>(kept));
}

}  // namespace

// The sweep runs twice, to count and to fill, as a list of pairs would take as much again.
const char* Adjacency::build(const Items& items, Stopper& stopper) {
  begin.assign(items.size.size() + 1, 0);
  const auto count = [this](ItemIdx i, const Span&, ItemIdx j, const Span&) {
    ++begin[i + 1];
    ++begin[j + 1];
  };
  const char* refusal = for_each_meeting(items, kMaxNeighbours, stopper, count);
  if (refusal != nullptr) return refusal;
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];

  other.resize(static_cast<std::size_t>(begin.back()));
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  const auto fill = [this, &next](ItemIdx i, const Span&, ItemIdx j, const Span&) {
    other[static_cast<std::size_t>(next[i]++)] = j;
    other[static_cast<std::size_t>(next[j]++)] = i;
  };
  refusal = for_each_meeting(items, kMaxNeighbours, stopper, fill);
  if (refusal != nullptr) return refusal;
  MEMPLAN_ASSERT(next.empty() ||
                 next.back() == begin.back());  // the sweep met the same pairs twice
  if (items.spans.size() > items.size.size()) merge_repeats(this);
  return nullptr;
}

bool Adjacency::check_invariants() const {
  if (!kAssertions) return true;
  MEMPLAN_ASSERT(begin.front() == 0 && begin.back() == static_cast<std::int64_t>(other.size()));
  const auto count = static_cast<ItemIdx>(begin.size()) - 1;
  for (ItemIdx i = 0; i < count; ++i) {
    MEMPLAN_ASSERT(begin[i] <= begin[i + 1]);
    std::vector<ItemIdx> row(first(i), last(i));
    std::sort(row.begin(), row.end());
    MEMPLAN_ASSERT(std::adjacent_find(row.begin(), row.end()) == row.end());
    for (const ItemIdx j : row) {
      MEMPLAN_ASSERT(j >= 0 && j < count && j != i);
      MEMPLAN_ASSERT(std::find(first(j), last(j), i) != last(j));
    }
  }
  return true;
}

}  // namespace memplan
