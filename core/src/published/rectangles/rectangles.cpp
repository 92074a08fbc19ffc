#include "memplan/rectangles.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "model/answers.h"
#include "model/items.h"
#include "published/rectangles/absolute.h"
#include "published/rectangles/distances.h"
#include "published/rectangles/geometry.h"
#include "published/rectangles/relative.h"

namespace memplan {

namespace {

Plan answer(Outcome outcome, const Problem& problem, const Items& items,
            const std::vector<Bytes>& offsets, const std::string& cut_short) {
  if (outcome == Outcome::kSolved) {
    return plan_of(problem, items, offsets, "the search found a solution");
  }
  if (outcome == Outcome::kCutShort) return unknown(cut_short);
  std::vector<ItemIdx> all(items.size.size());
  std::iota(all.begin(), all.end(), 0);
  return infeasible(buffers_of(items, all), "the search is exhausted");
}

Bytes largest_domain(const Items& items, Bytes step) {
  Bytes most = 0;
  for (ItemIdx i = 0; i < items.count(); ++i) {
    most = std::max(most, (items.latest[i] - items.earliest[i]) / step + 1);
  }
  return most;
}

Plan place_absolutely(const Problem& problem, const Items& items, const CspOptions& options,
                      std::int64_t node_budget, Stopper& stopper) {
  Rectangles rectangles(items);
  if (const char* refusal = rectangles.build(problem, stopper)) return unknown(refusal);
  const Bytes step = grid_step(problem, items);
  AbsoluteSearch search(rectangles, options, step, stopper);
  const Outcome outcome = search.run(node_budget);
  // The note has the number of offsets, since no time is enough for a fine grid (source 000,
  // section 8.1).
  Plan plan = answer(outcome, problem, items, search.offsets(),
                     "the budget ran out, with up to " +
                         std::to_string(largest_domain(items, step)) + " offsets for a buffer");
  plan.stats.nodes = search.nodes();
  return plan;
}

Plan place_relatively(const Problem& problem, const Items& items, const MetaCspOptions& options,
                      std::int64_t node_budget, Stopper& stopper) {
  Rectangles rectangles(items);
  if (const char* refusal = rectangles.build(problem, stopper)) return unknown(refusal);
  Distances distances;
  if (const char* refusal = distances.build(items, stopper)) return unknown(refusal);
  RelativeSearch search(rectangles, options, distances, stopper);
  if (const char* refusal = search.build()) return unknown(refusal);
  const Outcome outcome = search.run(node_budget);
  std::vector<Bytes> offsets;
  for (ItemIdx i = 0; i < items.count(); ++i) offsets.push_back(distances.lower(i));
  Plan plan = answer(outcome, problem, items, offsets, "the budget ran out");
  plan.stats.nodes = search.nodes();
  return plan;
}

}  // namespace

Plan csp(const Problem& problem, const Sections& sections, Bytes capacity,
         const CspOptions& options, std::int64_t node_budget, Stopper& stopper) {
  const Items items = make_items(problem, sections, capacity);
  std::optional<Plan> plan = refuted_at_once(items);
  if (!plan) plan = place_absolutely(problem, items, options, node_budget, stopper);
  return found_by("csp", *std::move(plan));
}

Plan meta_csp(const Problem& problem, const Sections& sections, Bytes capacity,
              const MetaCspOptions& options, std::int64_t node_budget, Stopper& stopper) {
  const Items items = make_items(problem, sections, capacity);
  std::optional<Plan> plan = refuted_at_once(items);
  if (!plan) plan = place_relatively(problem, items, options, node_budget, stopper);
  return found_by("meta_csp", *std::move(plan));
}

}  // namespace memplan
