#include "apart/oracle.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

#include "memplan/solve.h"
#include "model/subproblem.h"

namespace memplan::apart {

namespace {

constexpr std::int64_t kNodesOfFilter = 20000;  // of one question of the deletion filter

// The conflicts of a problem, and more pairs.
Conflicts joined(const Problem& problem, const std::vector<Penalty>& pairs, const Chosen& more) {
  const Conflicts& old = problem.conflicts;
  std::vector<std::vector<BufferIdx>> rows(problem.size.size());
  for (const PairIdx k : more) {
    rows[pairs[k].first].push_back(pairs[k].second);
    rows[pairs[k].second].push_back(pairs[k].first);
  }
  Conflicts all;
  all.begin.push_back(0);
  for (BufferIdx b = 0; b < problem.count(); ++b) {
    std::sort(rows[b].begin(), rows[b].end());
    std::set_union(old.first(b), old.last(b), rows[b].begin(), rows[b].end(),
                   std::back_inserter(all.other));
    all.begin.push_back(static_cast<std::int64_t>(all.other.size()));
  }
  return all;
}

Chosen within(const Model& model, const Chosen& pairs, const std::vector<BufferIdx>& rows) {
  Chosen found;
  const auto has = [&rows](BufferIdx b) { return std::binary_search(rows.begin(), rows.end(), b); };
  for (const PairIdx k : pairs) {
    if (has(model.pairs[k].first) && has(model.pairs[k].second)) found.push_back(k);
  }
  return found;
}

}  // namespace

Plan Oracle::ask(const Chosen& apart, std::int64_t nodes, const std::vector<BufferIdx>& rows,
                 bool is_lowest) {
  SolveOptions options;
  options.objective = is_lowest ? Objective::kMinPeak : Objective::kFit;
  options.budget.nodes = std::max<std::int64_t>(1, std::min(nodes, counter_.left()));
  options.seed = seed_;
  options.interrupt = [this] { return counter_.stopper().look(); };
  Problem problem = model_.problem;
  problem.conflicts = joined(problem, model_.pairs, apart);
  if (!rows.empty()) problem = subproblem(problem, rows);
  Plan plan = solve(problem, options);
  counter_.take(1 + plan.stats.nodes);
  if (plan.status != Status::kInfeasible) return plan;
  if (plan.conflict.empty()) {
    plan.conflict.resize(problem.size.size());
    std::iota(plan.conflict.begin(), plan.conflict.end(), 0);
  }
  if (!rows.empty()) {
    for (BufferIdx& row : plan.conflict) row = rows[row];
  }
  std::sort(plan.conflict.begin(), plan.conflict.end());
  return plan;
}

Chosen Oracle::shrink(const Chosen& apart, std::vector<BufferIdx> rows) {
  Chosen core = within(model_, apart, rows);
  for (std::size_t chunk = std::max<std::size_t>(1, core.size() / 2);; chunk /= 2) {
    for (std::size_t at = 0; at < core.size();) {
      if (counter_.is_spent()) return core;
      const auto from = core.begin() + static_cast<std::ptrdiff_t>(at);
      const auto to = core.begin() + static_cast<std::ptrdiff_t>(std::min(at + chunk, core.size()));
      Chosen rest(core.begin(), from);
      rest.insert(rest.end(), to, core.end());
      const Plan plan = ask(rest, kNodesOfFilter, rows, false);
      if (plan.status != Status::kInfeasible) {
        at += chunk;
        continue;
      }
      rows = plan.conflict;
      const Chosen before(core.begin(), from);
      at = within(model_, before, rows).size();
      core = within(model_, rest, rows);
    }
    if (chunk == 1) return core;
  }
}

}  // namespace memplan::apart
