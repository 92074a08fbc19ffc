#include "order/delays.h"

#include <algorithm>
#include <cstddef>

#include "order/matching.h"

namespace memplan::order {

namespace {

// The matrix of what waits for what has a bit for each pair: 128 MiB.
constexpr OperatorIdx kMaxOperators = 1 << 15;
constexpr std::size_t kMaxOthers = 8;

// What an operator does in every order.
struct Always {
  Bytes makes = 0;        // storages that no other operator touches before, and another one later
  Bytes ends = 0;         // storages that no other operator touches later, but one before
  Bytes may_end = 0;      // storages that may end here
  Bytes own = 0;          // storages that only it touches, and its workspace
  Bytes saves = 0;        // at most, by writing in place
  bool is_bound = false;  // another operator may write over what may end here
};

// Which operators wait for which, also through others.
class Followers {
 public:
  explicit Followers(const Program& program)
      : words_((program.workspace.size() + 63) / 64), bits_(words_ * program.workspace.size(), 0) {
    const std::vector<OperatorIdx> order = legal_order(program);
    for (auto each = order.rbegin(); each != order.rend(); ++each) {
      std::uint64_t* row = bits_.data() + words_ * static_cast<std::size_t>(*each);
      for (const OperatorIdx next : program.after[*each]) {
        const std::uint64_t* other = bits_.data() + words_ * static_cast<std::size_t>(next);
        for (std::size_t i = 0; i < words_; ++i) row[i] |= other[i];
        row[next >> 6] |= std::uint64_t{1} << (next & 63);
      }
    }
  }
  bool has(OperatorIdx op, OperatorIdx later) const {
    const std::size_t row = words_ * static_cast<std::size_t>(op);
    return ((bits_[row + static_cast<std::size_t>(later >> 6)] >> (later & 63)) & 1) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// Sums up what each operator does whatever the order. Which operator touches a storage first or
// last is known only where all other users wait for it, or it for them.
std::vector<Always> find_always(const Program& program) {
  std::vector<std::uint8_t> is_written_over(program.size.size(), 0);
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    for (const Pair& pair : program.in_place[op]) is_written_over[pair.input] = 1;
  }
  const Followers followers(program);
  std::vector<Always> found(program.workspace.size());
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    Always& each = found[op];
    each.own = program.workspace[op];
    for (const StorageIdx s : program.touched[op]) {
      bool makes = program.given[s] == 0;
      bool ends = program.wanted[s] == 0;
      bool may_end = ends;
      for (const OperatorIdx user : program.users[s]) {
        if (user == op) continue;
        const bool is_later = followers.has(op, user);
        makes = makes && is_later;
        ends = ends && followers.has(user, op);
        may_end = may_end && !is_later;
      }
      if (makes && ends) {
        each.own += program.size[s];
        continue;
      }
      if (makes) each.makes += program.size[s];
      if (ends) each.ends += program.size[s];
      if (!may_end) continue;
      each.may_end += program.size[s];
      each.is_bound = each.is_bound || is_written_over[s] != 0;
    }
    each.saves = saved_bytes(program, op, [](StorageIdx) { return true; });
  }
  return found;
}

}  // namespace

Delays::Delays(const Program& program)
    : program_(program),
      lazy_(program.workspace.size(), 0),
      leaf_(program.workspace.size(), 0),
      place_(program.workspace.size(), -1) {
  if (program.operators() > kMaxOperators) return;
  const std::vector<Always> always = find_always(program);
  for (const Always& each : always) {
    may_need_.push_back(each.may_end + each.own);
    surely_needs_.push_back(each.ends + each.own - each.saves);
  }
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    const Always& each = always[op];
    if (each.makes < each.may_end || each.is_bound) continue;
    const auto after = program.after[op];
    if (after.size() == 0) {
      leaf_[op] = 1;
      continue;
    }
    const bool is_lazy = std::all_of(after.begin(), after.end(), [&](OperatorIdx next) {
      return always[next].makes + always[next].own - always[next].saves >= may_need_[op];
    });
    lazy_[op] = is_lazy ? 1 : 0;
  }
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    if (lazy_[op] == 0) by_need_.push_back(op);
  }
  std::stable_sort(by_need_.begin(), by_need_.end(), [&](OperatorIdx a, OperatorIdx b) {
    return surely_needs_[a] > surely_needs_[b];
  });
}

// The operators that have still to run and are not lazy, with what each surely needs above what it
// leaves, from the largest on: all that are ready, and the first of the others.
std::vector<std::pair<Bytes, OperatorIdx>> Delays::largest_needs(const State& state) const {
  std::vector<std::pair<Bytes, OperatorIdx>> found;
  for (const OperatorIdx op : state.ready()) {
    if (lazy_[op] != 0) continue;
    // What it ends now, it ends later, too.
    found.emplace_back(state.step(op) - state.live() - state.delta(op), op);
  }
  std::size_t others = 0;
  for (const OperatorIdx op : by_need_) {
    if (state.has_run(op)) continue;
    found.emplace_back(surely_needs_[op], op);
    if (++others == kMaxOthers) break;
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return b < a; });
  return found;
}

// Goes through the ready operators, and through those that become ready if the lazy ones found so
// far have run. Lazy operators are never choices: they run with the first that waits for them
// (needs()). A late operator is left out while an operator that it can follow at no cost has still
// to run; of two that could follow each other, one stays, so that the list is never empty.
std::vector<OperatorIdx> Delays::choices(const State& state) const {
  std::vector<OperatorIdx> found;
  std::vector<OperatorIdx> lazy;
  std::vector<std::pair<Bytes, OperatorIdx>> needs;
  const auto is_late = [&](OperatorIdx op) {
    if (leaf_[op] == 0) return false;
    if (needs.empty()) needs = largest_needs(state);
    for (const auto& [need, other] : needs) {
      if (need < may_need_[op]) return false;
      if (other == op) continue;
      if (need > may_need_[op] || leaf_[other] == 0 || other < op) return true;
    }
    return false;
  };
  const auto sort_in = [&](OperatorIdx op) {
    if (lazy_[op] != 0) {
      place_[op] = static_cast<std::int32_t>(lazy.size());
      lazy.push_back(op);
    } else if (!is_late(op)) {
      found.push_back(op);
    }
  };
  for (const OperatorIdx op : state.ready()) sort_in(op);
  for (std::size_t at = 0; at < lazy.size(); ++at) {
    for (const OperatorIdx next : program_.after[lazy[at]]) {
      // The last of the lazy operators that it waits for finds it.
      std::int32_t last = -1;
      bool is_there = true;
      for (const OperatorIdx other : program_.before[next]) {
        last = std::max(last, place_[other]);
        is_there = is_there && (place_[other] >= 0 || state.has_run(other));
      }
      if (is_there && last == static_cast<std::int32_t>(at)) sort_in(next);
    }
  }
  for (const OperatorIdx op : lazy) place_[op] = -1;
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<OperatorIdx> Delays::needs(const State& state, OperatorIdx choice) const {
  std::vector<OperatorIdx> found;
  std::vector<OperatorIdx> todo{choice};
  // Depth first, from the operators that wait to those that they wait for.
  while (!todo.empty()) {
    const OperatorIdx op = todo.back();
    OperatorIdx missing = -1;
    for (const OperatorIdx other : program_.before[op]) {
      if (!state.has_run(other) && std::find(found.begin(), found.end(), other) == found.end()) {
        missing = other;
        break;
      }
    }
    if (missing >= 0) {
      todo.push_back(missing);
      continue;
    }
    todo.pop_back();
    if (!todo.empty()) found.push_back(op);
  }
  return found;
}

}  // namespace memplan::order
