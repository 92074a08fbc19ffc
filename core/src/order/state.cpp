#include "order/state.h"

#include <algorithm>

#include "order/matching.h"
#include "util/random.h"

namespace memplan::order {

Bytes live_before(const Program& program) {
  Bytes live = program.base;
  for (StorageIdx s = 0; s < program.storages(); ++s) {
    const bool needed = program.users[s].size() > 0 || program.wanted[s] != 0;
    if (program.given[s] != 0 && needed) live += program.size[s];
  }
  return live;
}

Bytes live_after(const Program& program) {
  Bytes live = program.base;
  for (StorageIdx s = 0; s < program.storages(); ++s) {
    const bool made = program.users[s].size() > 0 || program.given[s] != 0;
    if (program.wanted[s] != 0 && made) live += program.size[s];
  }
  return live;
}

State::State(const Program& program)
    : program_(program),
      used_(program.size.size(), 0),
      waiting_(program.workspace.size(), 0),
      left_(program.size.size(), 0),
      delta_(program.workspace.size(), 0),
      born_(program.workspace),
      ready_{{}, std::vector<std::int32_t>(program.workspace.size(), -1)},
      falling_(ready_),
      ran_at_(program.workspace.size(), 0),
      bits_((program.workspace.size() + 63) / 64, 0),
      live_(live_before(program)) {
  for (StorageIdx s = 0; s < program.storages(); ++s) {
    for (const OperatorIdx user : program.users[s]) left_[s] ^= user;
    if (program.given[s] == 0) change_births(s, program.size[s]);
    if (program.wanted[s] == 0 && program.users[s].size() == 1) delta_[left_[s]] -= program.size[s];
  }
  for (OperatorIdx op = 0; op < program.operators(); ++op) {
    waiting_[op] = static_cast<std::int32_t>(program.before[op].size());
    if (waiting_[op] == 0) add_ready(op);
  }
}

bool State::dies_at(StorageIdx storage) const {
  if (program_.backwards) return used_[storage] == 0 && program_.given[storage] == 0;
  return used_[storage] + 1 == static_cast<std::int32_t>(program_.users[storage].size()) &&
         program_.wanted[storage] == 0;
}

Bytes State::step(OperatorIdx op) const {
  return live_ + born_[op] - saved_bytes(program_, op, [this](StorageIdx s) { return dies_at(s); });
}

bool State::became_ready(OperatorIdx op, std::size_t mark) const {
  const auto before = program_.before[op];
  return std::any_of(before.begin(), before.end(),
                     [&](OperatorIdx other) { return ran_at_[other] >= mark; });
}

void State::run(OperatorIdx op) {
  MEMPLAN_ASSERT(is_ready(op));
  live_ += delta_[op];
  drop_ready(op);
  for (const StorageIdx s : program_.touched[op]) {
    if (used_[s] == 0 && program_.given[s] == 0) change_births(s, -program_.size[s]);
    left_[s] ^= op;
    if (is_for_one(++used_[s], s)) change_delta(left_[s], -program_.size[s]);
  }
  bits_[op >> 6] |= std::uint64_t{1} << (op & 63);
  hash_ ^= mix(static_cast<std::uint64_t>(op));
  ran_at_[op] = done_.size();
  done_.push_back(op);
  for (const OperatorIdx next : program_.after[op]) {
    if (--waiting_[next] == 0) add_ready(next);
  }
}

void State::rewind(std::size_t count) {
  while (done_.size() > count) undo();
}

void State::undo() {
  const OperatorIdx op = done_.back();
  for (const OperatorIdx next : program_.after[op]) {
    if (waiting_[next]++ == 0) drop_ready(next);
  }
  done_.pop_back();
  bits_[op >> 6] &= ~(std::uint64_t{1} << (op & 63));
  hash_ ^= mix(static_cast<std::uint64_t>(op));
  for (const StorageIdx s : program_.touched[op]) {
    if (is_for_one(used_[s]--, s)) change_delta(left_[s], program_.size[s]);
    left_[s] ^= op;
    if (used_[s] == 0 && program_.given[s] == 0) change_births(s, program_.size[s]);
  }
  add_ready(op);
  live_ -= delta_[op];
}

// Whether a storage dies with one more operator, after `used` of those that touch it.
bool State::is_for_one(std::int32_t used, StorageIdx storage) const {
  return program_.wanted[storage] == 0 &&
         used + 1 == static_cast<std::int32_t>(program_.users[storage].size());
}

void State::change_delta(OperatorIdx op, Bytes change) {
  delta_[op] += change;
  if (!is_ready(op)) return;
  if ((delta_[op] <= 0) == (falling_.place[op] >= 0)) return;
  if (delta_[op] <= 0) {
    falling_.add(op);
  } else {
    falling_.drop(op);
  }
}

// The operator that touches a storage first makes it, so each of its users may be the one.
void State::change_births(StorageIdx storage, Bytes change) {
  for (const OperatorIdx user : program_.users[storage]) {
    born_[user] += change;
    change_delta(user, change);
  }
}

void State::add_ready(OperatorIdx op) {
  ready_.add(op);
  if (delta_[op] <= 0) falling_.add(op);
}

void State::drop_ready(OperatorIdx op) {
  ready_.drop(op);
  if (falling_.place[op] >= 0) falling_.drop(op);
}

void State::Set::add(OperatorIdx op) {
  place[op] = static_cast<std::int32_t>(members.size());
  members.push_back(op);
}

void State::Set::drop(OperatorIdx op) {
  const std::int32_t at = place[op];
  members[at] = members.back();
  place[members[at]] = at;
  members.pop_back();
  place[op] = -1;
}

std::vector<Bytes> steps_of(const Program& program, const std::vector<OperatorIdx>& order) {
  State state(program);
  std::vector<Bytes> steps;
  steps.reserve(order.size());
  for (const OperatorIdx op : order) {
    steps.push_back(state.step(op));
    state.run(op);
  }
  return steps;
}

}  // namespace memplan::order
