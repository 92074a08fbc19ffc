#include "published/somas/blocks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "util/failure.h"
#include "util/invariants.h"

namespace memplan::objects {

namespace {

// Of the source node of each tensor: "the sum of sizes of tensors whose global lifetimes include
// the execution order of the node". That is the load when the tensor begins.
std::vector<std::int64_t> breadths(const Problem& problem) {
  std::map<Time, Bytes> change;
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    change[problem.start[b]] += problem.size[b];
    change[problem.end[b]] -= problem.size[b];
  }
  Bytes load = 0;
  for (auto& [time, bytes] : change) bytes = load += bytes;
  std::vector<std::int64_t> result;
  result.reserve(problem.size.size());
  for (const Time start : problem.start) result.push_back(change[start]);
  return result;
}

std::vector<std::int64_t> unsafe_counts(const Problem& problem, const Sections& sections,
                                        Stopper& stopper) {
  std::vector<std::int64_t> result(problem.size.size(), 0);
  Unsafe unsafe(problem, sections);
  for (BufferIdx b = 0; b < problem.count() && !stopper.look(); ++b) {
    unsafe.look_from({b});
    for (BufferIdx a = 0; a < problem.count(); ++a) result[b] += unsafe.with(0, a) ? 1 : 0;
  }
  return result;
}

// The greatest goes first.
template <typename KeyOf>
std::vector<Block> by_key(std::vector<Block> all, KeyOf key_of) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(key_of(all[i]), i);
  std::sort(order.begin(), order.end(), [](const auto& x, const auto& y) {
    return x.first != y.first ? x.first > y.first : x.second < y.second;
  });
  std::vector<Block> result;
  MEMPLAN_ASSERT(order.size() == all.size());
  for (const auto& [key, i] : order) result.push_back(std::move(all[i]));
  return result;
}

}  // namespace

std::vector<Block> blocks(const Problem& problem) {
  std::vector<Block> all;
  std::map<std::int32_t, std::size_t> place;  // of each group
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    if (problem.group_of(b) == kNoGroup) {
      all.push_back({{b}, problem.size[b]});
      continue;
    }
    const auto [at, fresh] = place.emplace(problem.group[b], all.size());
    if (fresh) all.emplace_back();
    all[at->second].tensors.push_back(b);
  }
  for (Block& block : all) {
    if (block.tensors.size() == 1) {
      block.size = problem.size[block.tensors[0]];
      continue;
    }
    std::sort(block.tensors.begin(), block.tensors.end(), [&problem](BufferIdx x, BufferIdx y) {
      return problem.lead[x] != problem.lead[y] ? problem.lead[x] < problem.lead[y] : x < y;
    });
    for (const BufferIdx b : block.tensors) {
      const Bytes end = problem.lead[b] - problem.lead[block.tensors[0]] + problem.size[b];
      block.size = std::max(block.size, end);
    }
  }
  for (const Block& block : all) {
    MEMPLAN_ASSERT(!block.tensors.empty() && block.size >= problem.size[block.tensors[0]]);
  }
  return all;
}

std::vector<Block> sorted(const Problem& problem, const Sections& sections, const std::string& sort,
                          Stopper& stopper) {
  const auto greatest = [](const Block& block, const std::vector<std::int64_t>& of) {
    std::int64_t most = of[block.tensors[0]];
    for (const BufferIdx b : block.tensors) most = std::max(most, of[b]);
    return most;
  };
  if (sort == "size") {
    return by_key(blocks(problem), [](const Block& block) { return block.size; });
  }
  if (sort == "breadth") {
    const std::vector<std::int64_t> breadth = breadths(problem);
    return by_key(blocks(problem), [&](const Block& block) { return greatest(block, breadth); });
  }
  if (sort == "source") {
    std::vector<std::int64_t> earliness;
    for (const Time start : problem.start)
      earliness.push_back(~start);  // as -start, for any number
    return by_key(blocks(problem), [&](const Block& block) { return greatest(block, earliness); });
  }
  if (sort == "unsafe") {
    const std::vector<std::int64_t> count = unsafe_counts(problem, sections, stopper);
    return by_key(blocks(problem), [&count](const Block& block) {
      std::int64_t sum = 0;
      for (const BufferIdx b : block.tensors) sum += count[b];
      return sum;
    });
  }
  fail("there is no sort '" + sort + "': choose size, breadth, source or unsafe.");
}

std::vector<Interval> merge(std::vector<Interval> avoid) {
  std::sort(avoid.begin(), avoid.end(),
            [](const Interval& x, const Interval& y) { return x.lower < y.lower; });
  std::size_t top = 0;  // the stack is the front of the list
  for (const Interval& interval : avoid) {
    if (top == 0 || avoid[top - 1].upper < interval.lower) {
      avoid[top++] = interval;
    } else {
      avoid[top - 1].upper = std::max(avoid[top - 1].upper, interval.upper);
    }
  }
  avoid.resize(top);
  for (std::size_t i = 1; i < avoid.size(); ++i) {
    MEMPLAN_ASSERT(avoid[i - 1].upper < avoid[i].lower);
  }
  return avoid;
}

Bytes fit(Bytes size, Bytes head, const std::vector<Interval>& avoid, const Stretch& object,
          Fitter fitter) {
  Bytes best = kNoOffset;
  Bytes best_gap = 0;
  Bytes upper = object.right;
  const auto consider = [&](Bytes lower) {
    if (head > upper - lower || size > object.right - lower) return;
    const Bytes gap = upper - lower;
    // Algorithms 11 and 12; from the top down, so that an equal one is lower.
    const bool sooner = fitter == Fitter::kFirst || best == kNoOffset || gap <= best_gap;
    if (!sooner) return;
    best = lower;
    best_gap = gap;
  };
  // Line 14 as printed could be taken to be inside of the test of line 10. Then a gap that is too
  // small would be joined to the next one below, over what is between them.
  for (std::size_t i = avoid.size(); i-- > 0; upper = avoid[i].lower) consider(avoid[i].upper);
  consider(object.offset);
  MEMPLAN_ASSERT(best == kNoOffset || (object.offset <= best && size <= object.right - best));
  return best;
}

}  // namespace memplan::objects
