#include "order/program.h"

#include <algorithm>
#include <limits>

namespace memplan::order {

namespace {

using Arcs = std::vector<std::pair<OperatorIdx, OperatorIdx>>;

// Every arc once, in ascending order.
Arcs sorted_arcs(const std::vector<Arc>& arcs) {
  Arcs sorted;
  sorted.reserve(arcs.size());
  for (const Arc& arc : arcs) sorted.emplace_back(arc.from, arc.to);
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

Arcs flipped(const Arcs& arcs) {
  Arcs other;
  other.reserve(arcs.size());
  for (const auto& [from, to] : arcs) other.emplace_back(to, from);
  return other;
}

// Answers which operators wait for one operator, up to the highest number that is asked.
class Descendants {
 public:
  explicit Descendants(const Program& program)
      : program_(program), reached_(program.workspace.size(), 0) {}

  void start(OperatorIdx op, OperatorIdx highest) {
    ++round_;
    std::vector<OperatorIdx> todo{op};
    while (!todo.empty()) {
      const OperatorIdx at = todo.back();
      todo.pop_back();
      for (const OperatorIdx next : program_.after[at]) {
        if (next > highest || reached_[next] == round_) continue;
        reached_[next] = round_;
        todo.push_back(next);
      }
    }
  }
  bool has(OperatorIdx op) const { return reached_[op] == round_; }

 private:
  const Program& program_;
  std::vector<std::int32_t> reached_;
  std::int32_t round_ = 0;
};

OperatorIdx highest_user(const Program& program, StorageIdx storage) {
  const auto users = program.users[storage];
  return users.size() == 0 ? -1 : users[users.size() - 1];
}

// An operator can write an output over an input in some order if it is the one that makes the
// output, and if nothing that waits for it touches the input.
bool can_be_used(const Program& program, Descendants& descendants, const InPlace& pair) {
  if (program.size[pair.output] > program.size[pair.input]) return false;
  if (program.wanted[pair.input] != 0 || program.given[pair.output] != 0) return false;
  descendants.start(
      pair.op, std::max(highest_user(program, pair.input), highest_user(program, pair.output)));
  for (const OperatorIdx user : program.users[pair.output]) {
    if (user != pair.op && !descendants.has(user)) return false;
  }
  for (const OperatorIdx user : program.users[pair.input]) {
    if (descendants.has(user)) return false;
  }
  return true;
}

}  // namespace

Program make_program(const OrderProblem& problem) {
  Program program;
  program.workspace = problem.workspace;
  program.size = problem.size;
  program.given = problem.given;
  program.wanted = problem.wanted;
  const std::size_t operators = problem.workspace.size();
  const Arcs arcs = sorted_arcs(problem.arcs);
  program.after = Lists<OperatorIdx>(operators, arcs);
  program.before = Lists<OperatorIdx>(operators, flipped(arcs));
  std::vector<std::pair<std::int32_t, OperatorIdx>> users;
  std::vector<std::pair<std::int32_t, StorageIdx>> touched;
  for (StorageIdx s = 0; s < problem.storages(); ++s) {
    const OperatorIdx* const last = problem.user.data() + problem.user_begin[s + 1];
    for (const OperatorIdx* user = problem.user.data() + problem.user_begin[s]; user != last;
         ++user) {
      users.emplace_back(s, *user);
      touched.emplace_back(*user, s);
    }
  }
  program.users = Lists<OperatorIdx>(problem.size.size(), users);
  program.touched = Lists<StorageIdx>(operators, touched);
  Descendants descendants(program);
  std::vector<std::pair<std::int32_t, Pair>> pairs;
  for (const InPlace& pair : problem.in_place) {
    if (can_be_used(program, descendants, pair)) {
      pairs.push_back({pair.op, {pair.input, pair.output}});
    }
  }
  program.in_place = Lists<Pair>(operators, pairs);
  return program;
}

Program turned(const Program& program) {
  Program other = program;
  other.backwards = !program.backwards;
  std::swap(other.given, other.wanted);
  std::swap(other.after, other.before);
  return other;
}

std::vector<OperatorIdx> legal_order(const Program& program) {
  std::vector<std::size_t> waiting;
  std::vector<OperatorIdx> order;
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    waiting.push_back(program.before[op].size());
    if (waiting.back() == 0) order.push_back(op);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const OperatorIdx next : program.after[order[at]]) {
      if (--waiting[next] == 0) order.push_back(next);
    }
  }
  return order;
}

void mark_reached(const Lists<OperatorIdx>& next, OperatorIdx op, std::int32_t node,
                  std::vector<std::int32_t>& node_of) {
  std::vector<OperatorIdx> todo{op};
  while (!todo.empty()) {
    const OperatorIdx at = todo.back();
    todo.pop_back();
    for (const OperatorIdx other : next[at]) {
      if (node_of[other] == node) continue;
      node_of[other] = node;
      todo.push_back(other);
    }
  }
}

Program with_arcs(Program program, const std::vector<std::pair<OperatorIdx, OperatorIdx>>& arcs) {
  Arcs all = arcs;
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    for (const OperatorIdx next : program.after[op]) all.emplace_back(op, next);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  program.after = Lists<OperatorIdx>(program.workspace.size(), all);
  program.before = Lists<OperatorIdx>(program.workspace.size(), flipped(all));
  return program;
}

Part make_part(const Program& whole, const std::vector<OperatorIdx>& order, std::size_t first,
               std::size_t last) {
  Part part;
  part.operators.assign(order.begin() + first, order.begin() + last);
  std::sort(part.operators.begin(), part.operators.end());
  std::vector<std::int32_t> place(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = static_cast<int>(at);
  std::vector<OperatorIdx> number(order.size(), -1);
  for (std::size_t i = 0; i < part.operators.size(); ++i) {
    number[part.operators[i]] = static_cast<OperatorIdx>(i);
  }
  Program& program = part.program;
  program.backwards = whole.backwards;
  program.base = whole.base;
  std::vector<StorageIdx> storage_of(whole.size.size(), -1);
  std::vector<std::pair<std::int32_t, OperatorIdx>> users;
  for (StorageIdx s = 0; s < whole.storages(); ++s) {
    bool inside = false;
    bool before = whole.given[s] != 0;
    bool later = whole.wanted[s] != 0;
    for (const OperatorIdx user : whole.users[s]) {
      inside |= number[user] >= 0;
      before |= place[user] < static_cast<std::int64_t>(first);
      later |= place[user] >= static_cast<std::int64_t>(last);
    }
    if (!inside) {
      if (before && later) program.base += whole.size[s];
      continue;
    }
    storage_of[s] = program.storages();
    for (const OperatorIdx user : whole.users[s]) {
      if (number[user] >= 0) users.emplace_back(program.storages(), number[user]);
    }
    program.size.push_back(whole.size[s]);
    program.given.push_back(before ? 1 : 0);
    program.wanted.push_back(later ? 1 : 0);
  }
  const std::size_t operators = part.operators.size();
  Arcs arcs;
  std::vector<std::pair<std::int32_t, StorageIdx>> touched;
  std::vector<std::pair<std::int32_t, Pair>> pairs;
  for (std::size_t i = 0; i < operators; ++i) {
    const OperatorIdx op = part.operators[i];
    const auto here = static_cast<OperatorIdx>(i);
    program.workspace.push_back(whole.workspace[op]);
    for (const OperatorIdx next : whole.after[op]) {
      if (number[next] >= 0) arcs.emplace_back(here, number[next]);
    }
    for (const StorageIdx s : whole.touched[op]) touched.emplace_back(here, storage_of[s]);
    for (const Pair& pair : whole.in_place[op]) {
      const Pair inner{storage_of[pair.input], storage_of[pair.output]};
      if (program.wanted[inner.input] == 0) pairs.push_back({here, inner});
    }
  }
  program.after = Lists<OperatorIdx>(operators, arcs);
  program.before = Lists<OperatorIdx>(operators, flipped(arcs));
  program.users = Lists<OperatorIdx>(program.size.size(), users);
  program.touched = Lists<StorageIdx>(operators, touched);
  program.in_place = Lists<Pair>(operators, pairs);
  return part;
}

}  // namespace memplan::order
