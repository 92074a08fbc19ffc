#include "solve/part.h"

#include <algorithm>
#include <utility>

#include "invariants.h"
#include "memplan/greedy.h"
#include "solve/begin.h"
#include "solve/searches.h"
#include "solve/together.h"

namespace memplan {

void learn_from_part(Incumbent& whole, Problem part, Bytes aside, std::vector<BufferIdx> rows,
                     std::int64_t nodes, const std::string& note) {
  const Bytes top = whole.top() - aside;
  if (top < 0) return;
  MEMPLAN_ASSERT(aside >= 0 && check(part).empty());
  part.capacity = top;
  SolveOptions options = whole.options();
  options.budget = {};
  options.budget.nodes = std::min(nodes, whole.nodes_left());
  options.progress = nullptr;
  options.interrupt = [&whole] { return whole.stopper().look(); };

  Incumbent within(part, options);
  begin(within, has_relations(part));
  GreedyOptions quick;
  quick.orders = {"length", "size"};
  quick.target = (whole.fit_only() ? whole.top() : whole.lower_bound()) - aside;
  if (!within.settled()) {
    within.learn(within.top(),
                 greedy(part, within.sections(), quick, within.nodes_left(), within.stopper()),
                 "greedy");
  }
  Together together(within, {exact_search(within), true});
  while (!within.settled() && !within.out_of_budget() &&
         !(within.has_plan() && within.peak() <= whole.lower_bound() - aside)) {
    if (!together.round(options.budget.nodes / 4)) break;
  }
  const Bytes bound = std::min(within.lower_bound(), top + 1) + aside;
  const bool none = within.settled() && !within.has_plan();
  Plan answer = within.finish("exact");
  whole.charge(answer.stats);
  if (!none && bound <= whole.lower_bound()) return;
  whole.refuted(none ? whole.top() : bound - 1, std::move(rows), note);
}

}  // namespace memplan
