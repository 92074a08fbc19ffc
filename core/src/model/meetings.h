// Every pair of spans that share a section, found by a sweep over the sections.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "memplan/budget.h"
#include "model/items.h"

namespace memplan {

// Calls `meet(i, span of i, j, span of j)` once per pair. Returns nullptr when it has visited all,
// or else a clause that says why it has not: time is up, or there are more than `limit` pairs.
template <typename Meet>
const char* for_each_meeting(const Items& items, std::int64_t limit, Stopper& stopper, Meet meet) {
  struct Live {
    ItemIdx item;
    const Span* span;
  };
  std::vector<Live> order;
  order.reserve(items.spans.size());
  for (ItemIdx i = 0; i < items.count(); ++i) {
    for (const Span* span = items.begin(i); span != items.end(i); ++span)
      order.push_back({i, span});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Live& a, const Live& b) { return a.span->first < b.span->first; });

  std::int64_t pairs = 0;
  std::vector<Live> live;
  for (const Live& next : order) {
    const auto ended = [&next](const Live& x) { return x.span->last < next.span->first; };
    live.erase(std::remove_if(live.begin(), live.end(), ended), live.end());
    pairs += static_cast<std::int64_t>(live.size());
    if (pairs > limit) return "too many pairs of buffers are live together for this search";
    // Thousands of live spans take so long that the clock must not be skipped, as expired() does.
    if (live.size() > 1024 ? stopper.look() : stopper.expired()) return "the budget ran out";
    for (const Live& x : live) meet(x.item, *x.span, next.item, *next.span);
    live.push_back(next);
  }
  return nullptr;
}

}  // namespace memplan
