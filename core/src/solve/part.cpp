#include "solve/part.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "memplan/greedy.h"
#include "model/ended_by.h"
#include "solve/begin.h"
#include "solve/exact_search.h"
#include "solve/search_and_prover.h"
#include "util/invariants.h"

namespace memplan {

void learn_from_part(Incumbent& whole, Problem part, Bytes aside, std::vector<BufferIdx> rows,
                     std::int64_t nodes, const char* kind, const std::string& note) {
  const Bytes top = whole.top() - aside;
  if (top < 0) return;
  MEMPLAN_ASSERT(aside >= 0 && check(part).empty());
  part.capacity = top;
  SolveOptions options = whole.options();
  options.budget = {};
  options.budget.nodes = std::min(nodes, whole.nodes_left());
  options.progress = nullptr;
  options.interrupt = [&whole] { return whole.stopper().look(); };
  if (options.trace) {
    options.trace = [&whole, kind, begin = whole.stopper().elapsed()](Round round) {
      round.part = kind;
      round.seconds += begin;
      // The part sees every end of the whole as an interrupt.
      if (std::strcmp(round.ended_by, "interrupt") == 0) {
        round.ended_by = ended_by(Status::kUnknown, whole.stopper(), "end");
      }
      whole.options().trace(round);
    };
  }

  Incumbent within(part, options);
  begin(within, has_relations(part));
  GreedyOptions quick;
  quick.orders = {"length", "size"};
  quick.target = (whole.fit_only() ? whole.top() : whole.lower_bound()) - aside;
  if (!within.settled()) {
    within.take(quick.target, within.nodes_left(),
                greedy(part, within.sections(), quick, within.nodes_left(), within.stopper()),
                "greedy", "orders");
  }
  within.find_unit();
  SearchAndProver both(within, {exact_search(within), true});
  while (within.is_open() && !(within.has_plan() && within.peak() <= whole.lower_bound() - aside)) {
    if (!both.round(options.budget.nodes / 4)) break;
  }
  const Bytes bound = std::min(within.lower_bound(), top + 1) + aside;
  const bool none = within.settled() && !within.has_plan();
  Plan answer = within.finish("exact");
  whole.charge(answer.stats);
  if (!none && bound <= whole.lower_bound()) return;
  whole.refuted(none ? whole.top() : bound - 1, std::move(rows), note);
}

}  // namespace memplan
