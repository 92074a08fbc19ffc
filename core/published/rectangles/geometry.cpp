#include "published/rectangles/geometry.h"

#include <algorithm>
#include <numeric>

#include "model/answers.h"
#include "model/meetings.h"
#include "util/invariants.h"

namespace memplan {

namespace {
constexpr std::int64_t kMaxDistances = std::int64_t{1} << 25;  // 256 MiB
}

const char* Rectangles::build(const Problem& problem, Stopper& stopper) {
  neighbours.resize(items.size.size());
  const auto meet = [this](ItemIdx i, const Span&, ItemIdx j, const Span&) {
    neighbours[i].push_back(j);
    neighbours[j].push_back(i);
  };
  if (const char* refusal = for_each_meeting(items, kMaxDistances, stopper, meet)) return refusal;
  const bool repeats = items.spans.size() > items.size.size();
  for (std::vector<ItemIdx>& of : neighbours) {
    if (!repeats) break;
    if (stopper.look()) return "the budget ran out";
    std::sort(of.begin(), of.end());
    of.erase(std::unique(of.begin(), of.end()), of.end());
  }

  std::vector<ItemIdx> by_size(items.size.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [this](ItemIdx a, ItemIdx b) { return items.size[a] > items.size[b]; });
  in_section.resize(static_cast<std::size_t>(items.section_count));
  for (const ItemIdx i : by_size) {
    if (stopper.look()) return "the budget ran out";
    for (const Span* span = items.begin(i); span != items.end(i); ++span) {
      for (SectionIdx s = span->first; s <= span->last; ++s) in_section[s].push_back(i);
    }
  }
  for (ItemIdx i = 0; i < items.count(); ++i) {
    const BufferIdx b = items.buffer[i];
    area.push_back(static_cast<double>(problem.size[b]) *
                   (static_cast<double>(problem.end[b]) - static_cast<double>(problem.start[b])));
  }
  return nullptr;
}

Bytes grid_step(const Problem& problem, const Items& items) {
  Bytes step = 0;
  for (const Reserved& r : items.reserved) {
    if (r.upper < items.capacity) step = std::gcd(step, r.upper);
  }
  for (ItemIdx i = 0; i < items.count(); ++i) {
    step = std::gcd(step, items.size[i]);
    const Bytes pin = problem.pin_of(items.buffer[i]);
    if (pin != kNoOffset) step = std::gcd(step, pin);
  }
  const auto agrees = [&step](Bytes alignment) {
    return step % alignment == 0 || alignment % step == 0;
  };
  // A step that shrinks for one alignment may no longer agree with one before it.
  for (bool settled = false; !settled;) {
    settled = true;
    for (const Bytes alignment : items.alignment) {
      if (agrees(alignment)) continue;
      step = std::gcd(step, alignment);
      settled = false;
    }
  }
  MEMPLAN_ASSERT(step > 0 || items.count() == 0);
  for (ItemIdx i = 0; i < items.count(); ++i) MEMPLAN_ASSERT(items.size[i] % step == 0);
  return step;
}

Plan plan_of_outcome(Outcome outcome, const Problem& problem, const Items& items,
                     const std::vector<Bytes>& offsets, const std::string& cut_short) {
  if (outcome == Outcome::kSolved) {
    return plan_of(problem, items, offsets, "the search found a solution");
  }
  if (outcome == Outcome::kCutShort) return unknown(cut_short);
  std::vector<ItemIdx> all(items.size.size());
  std::iota(all.begin(), all.end(), 0);
  return infeasible(buffers_of(items, all), "the search is exhausted");
}

}  // namespace memplan
