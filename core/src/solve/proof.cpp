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

// A proof has a budget of its own, as large as the caller's: what the search refuted may take the
// prover, whose nodes are others, for ever. It is not less than that where few nodes were enough.
constexpr std::int64_t kLeastConflicts = 20'000;

// The same rows, of which only some hold anything: their numbers are those of the whole problem.
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

// The rows of a component that has no plan within `limit`; none, if none was found in the budget.
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
  // Whoever found the refutation may have said whose it is. Those alone may be a shorter proof; but
  // a bound that was rounded up to the next sum of sizes needs the others, too.
  std::vector<BufferIdx> rows =
      refute(incumbent, reduced_to(whole, incumbent.conflict()), limit, nullptr);
  if (rows.empty()) rows = refute(incumbent, whole, limit, nullptr);
  if (rows.empty()) return;
  prover::ProofLog log(*out);
  refute(incumbent, reduced_to(whole, rows), limit, &log);
}

}  // namespace memplan
