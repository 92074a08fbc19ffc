#include "again/model.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

namespace memplan {

namespace {

std::string check_maker(const RecomputeProblem& problem, StorageIdx storage) {
  const OrderProblem& program = problem.program;
  const OperatorIdx maker = problem.maker[storage];
  const std::string name = "storage " + std::to_string(storage);
  if (maker == again::kNoOperator) return "";
  if (program.given[storage] != 0) return name + " is given, so its maker must be -1";
  const OperatorIdx* const first = program.user.data() + program.user_begin[storage];
  const OperatorIdx* const last = program.user.data() + program.user_begin[storage + 1];
  if (first == last || *first != maker) {
    return "the maker of " + name + " must be the first of its users, or -1";
  }
  return "";
}

}  // namespace

std::string check(const RecomputeProblem& problem) {
  const OrderProblem& program = problem.program;
  if (std::string wrong = check(program); !wrong.empty()) return wrong;
  if (!program.in_place.empty()) return "a problem of recomputation must have no in-place pairs";
  const std::size_t operators = program.workspace.size();
  const std::size_t storages = program.size.size();
  if (problem.cost.size() != operators || problem.again.size() != operators) {
    return "the columns of operators must have one row for each";
  }
  if (problem.maker.size() != storages || problem.move.size() != storages) {
    return "the columns of storages must have one row for each";
  }
  constexpr std::int64_t kMaxCost = std::int64_t{1} << 53;
  std::int64_t total = 0;
  for (std::size_t v = 0; v < operators; ++v) {
    if (problem.cost[v] < 0 || problem.cost[v] >= kMaxCost - total) {
      return "costs must be 0 or more, and below 2^53 together";
    }
    total += problem.cost[v];
  }
  for (StorageIdx s = 0; s < program.storages(); ++s) {
    if (std::string wrong = check_maker(problem, s); !wrong.empty()) return wrong;
    if (problem.move[s] < -1 || problem.move[s] >= kMaxCost - total) {
      return "moves must cost 0 or more, or be -1, and be below 2^53 together with all costs";
    }
    total += std::max<std::int64_t>(problem.move[s], 0);
  }
  return "";
}

namespace again {

namespace {

using Arcs = std::vector<std::pair<OperatorIdx, OperatorIdx>>;

// Arcs of the program and from makers to readers, each once.
void set_neighbours(const RecomputeProblem& problem, Model& model) {
  Arcs arcs;
  for (const Arc& arc : problem.program.arcs) arcs.emplace_back(arc.from, arc.to);
  for (StorageIdx s = 0; s < model.storages(); ++s) {
    if (model.maker[s] == kNoOperator) continue;
    for (const OperatorIdx reader : model.readers[s]) arcs.emplace_back(model.maker[s], reader);
  }
  std::sort(arcs.begin(), arcs.end());
  arcs.erase(std::unique(arcs.begin(), arcs.end()), arcs.end());
  model.after = Lists<OperatorIdx>(problem.cost.size(), arcs);
  for (auto& [from, to] : arcs) std::swap(from, to);
  model.before = Lists<OperatorIdx>(problem.cost.size(), arcs);
}

void set_costs(const RecomputeProblem& problem, Model& model) {
  model.cost = problem.cost;
  model.cost.insert(model.cost.end(), problem.move.begin(), problem.move.end());
  std::int64_t divisor = 0;
  for (std::size_t run = 0; run < model.cost.size(); ++run) {
    if (model.again[run] == 0) model.cost[run] = 0;
    divisor = std::gcd(divisor, model.cost[run]);
  }
  model.unit = std::max<std::int64_t>(divisor, 1);
  for (std::int64_t& cost : model.cost) model.total += cost /= model.unit;
}

}  // namespace

Model make_model(const RecomputeProblem& problem) {
  const OrderProblem& program = problem.program;
  Model model;
  const OperatorIdx operators = program.operators();
  model.workspace = program.workspace;
  model.workspace.resize(program.workspace.size() + program.size.size(), 0);
  model.again = problem.again;
  model.size = program.size;
  model.given = program.given;
  model.wanted = program.wanted;
  model.maker = problem.maker;
  std::vector<std::pair<std::int32_t, OperatorIdx>> readers;
  std::vector<std::pair<std::int32_t, StorageIdx>> reads;
  std::vector<std::pair<std::int32_t, StorageIdx>> makes;
  for (StorageIdx s = 0; s < program.storages(); ++s) {
    const OperatorIdx maker = model.maker[s];
    const bool is_used = program.user_begin[s] < program.user_begin[s + 1];
    const bool can_move = problem.move[s] >= 0 && is_used;
    model.can_drop.push_back(maker != kNoOperator && model.again[maker] != 0 ? 1 : 0);
    model.again.push_back(can_move ? 1 : 0);
    if (program.given[s] != 0 && program.wanted[s] != 0 && !can_move) {
      model.base += program.size[s];
      continue;
    }
    if (program.given[s] != 0 && is_used) model.start += program.size[s];
    if (can_move) makes.emplace_back(operators + s, s);
    const OperatorIdx* const last = program.user.data() + program.user_begin[s + 1];
    for (const OperatorIdx* i = program.user.data() + program.user_begin[s]; i != last; ++i) {
      if (*i == maker) {
        makes.emplace_back(*i, s);
      } else {
        readers.emplace_back(s, *i);
        reads.emplace_back(*i, s);
      }
    }
  }
  model.start += model.base;
  model.readers = Lists<OperatorIdx>(program.size.size(), readers);
  model.reads = Lists<StorageIdx>(model.workspace.size(), reads);
  model.makes = Lists<StorageIdx>(model.workspace.size(), makes);
  set_neighbours(problem, model);
  set_costs(problem, model);
  return model;
}

Bytes own_bytes(const Model& model, OperatorIdx op) {
  Bytes bytes = model.base + model.workspace[op];
  for (const StorageIdx s : model.reads[op]) bytes += model.size[s];
  for (const StorageIdx s : model.makes[op]) bytes += model.size[s];
  return bytes;
}

}  // namespace again

}  // namespace memplan
