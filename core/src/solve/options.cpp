#include <algorithm>
#include <vector>

#include "memplan/solve.h"

namespace memplan {

namespace {

using Options = std::vector<Option>;

#define MEMPLAN_ROW(type, name, preset, says) rows->push_back({#name, says, &part->name});

void list(SolveOptions* part, Options* rows) { MEMPLAN_FIRST_OPTIONS(MEMPLAN_ROW) }
void list(GreedyOptions* part, Options* rows) { MEMPLAN_GREEDY_OPTIONS(MEMPLAN_ROW) }
void list(LargeOptions* part, Options* rows) { MEMPLAN_LARGE_OPTIONS(MEMPLAN_ROW) }
void list(ExactOptions* part, Options* rows) { MEMPLAN_EXACT_OPTIONS(MEMPLAN_ROW) }
void list(ProverOptions* part, Options* rows) { MEMPLAN_PROVER_OPTIONS(MEMPLAN_ROW) }

#undef MEMPLAN_ROW

}  // namespace

Options options_of(SolveOptions* options) {
  Options rows;
  const auto has_name = [options](const Solver& each) { return options->solver == each.name; };
  const auto known = std::find_if(solvers().begin(), solvers().end(), has_name);
  if (known == solvers().end()) return rows;
  if ((known->options & kFirstOptions) != 0) list(options, &rows);
  if ((known->options & kGreedyOptions) != 0) list(&options->greedy, &rows);
  if ((known->options & kLargeOptions) != 0) list(&options->large, &rows);
  if ((known->options & kExactOptions) != 0) list(&options->exact, &rows);
  if ((known->options & kProverOptions) != 0) list(&options->prover, &rows);
  return rows;
}

}  // namespace memplan
