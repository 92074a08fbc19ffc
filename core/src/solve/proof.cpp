#include "solve/proof.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "memplan/sections.h"
#include "model/ended_by.h"
#include "prover/prover.h"

namespace memplan {

namespace {

// A proof has a budget of its own, as large as the caller's: the prover, whose nodes are others,
// may need for ever to refute what the search refuted. Where few nodes were enough for the search,
// the prover still has this many.
constexpr std::int64_t kLeastConflicts = 20'000;

// Keeps all rows, so that they keep their numbers, but lets only some of them hold anything.
Problem reduced_to(const Problem& whole, const std::vector<BufferIdx>& rows) {
  std::vector<char> kept(whole.size.size(), 0);
  for (const BufferIdx row : rows) kept[row] = 1;
  Problem part = whole;
  for (BufferIdx b = 0; b < part.count(); ++b) {
    if (kept[b] != 0) continue;
    part.size[b] = 0;
    if (!part.pin.empty()) part.pin[b] = kNoOffset;
  }
  part.gaps.erase(std::remove_if(part.gaps.begin(), part.gaps.end(),
                                 [&kept](const Gap& gap) { return kept[gap.buffer] == 0; }),
                  part.gaps.end());
  return part;
}

// Returns the rows of a component that has no plan within `limit`; empty, if the budget ended
// first.
std::vector<BufferIdx> refute(Incumbent& incumbent, const Problem& problem, Bytes limit,
                              prover::ProofLog* log) {
  const Sections sections = sweep(problem);
  if (!prover::Prover::suits(problem, sections)) return {};
  const SolveOptions& options = incumbent.options();
  prover::Prover prover(problem, sections, limit, options.prover, options.seed, log);
  prover::Slice slice{std::max(options.budget.nodes, kLeastConflicts),
                      std::numeric_limits<std::int64_t>::max()};
  const Plan answer = prover.run(limit, &slice, &incumbent.stopper(), nullptr);
  Round round;
  round.engine = "proof";
  round.stage = log == nullptr ? "trial" : "written";
  round.target = limit;
  round.nodes = round.conflicts = answer.stats.nodes;
  round.ended_by =
      ended_by(answer.status, incumbent.stopper(), slice.conflicts <= 0 ? "nodes" : "end");
  incumbent.trace(round);
  return answer.status == Status::kInfeasible ? answer.conflict : std::vector<BufferIdx>{};
}

}  // namespace

void write_proof(Incumbent& incumbent, std::ostream* out) {
  if (!incumbent.settled() || (incumbent.fit_only() && incumbent.has_plan())) return;
  const Incumbent::Lap lap(incumbent, "proof");
  const Bytes limit = incumbent.top();
  if (limit < 0) return;  // a peak of 0 needs no proof
  const Problem& whole = incumbent.problem();
  // The engine that refuted the limit may have named an infeasible subset, which may have a shorter
  // proof. But a bound that was rounded up to the next sum of sizes needs the other rows, too.
  std::vector<BufferIdx> rows =
      refute(incumbent, reduced_to(whole, incumbent.conflict()), limit, nullptr);
  if (rows.empty()) rows = refute(incumbent, whole, limit, nullptr);
  if (rows.empty()) return;
  prover::ProofLog log(*out);
  refute(incumbent, reduced_to(whole, rows), limit, &log);
}

}  // namespace memplan
