#include "order/state.h"

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
      place_(program.workspace.size(), -1),
      bits_((program.workspace.size() + 63) / 64, 0),
      live_(live_before(program)) {
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
  Bytes born = program_.workspace[op];
  for (const StorageIdx s : program_.touched[op]) {
    if (used_[s] == 0 && program_.given[s] == 0) born += program_.size[s];
  }
  return live_ + born - saved_bytes(program_, op, [this](StorageIdx s) { return dies_at(s); });
}

Bytes State::delta(OperatorIdx op) const {
  Bytes change = 0;
  for (const StorageIdx s : program_.touched[op]) {
    const auto users = static_cast<std::int32_t>(program_.users[s].size());
    if (used_[s] == 0 && program_.given[s] == 0) change += program_.size[s];
    if (used_[s] + 1 == users && program_.wanted[s] == 0) change -= program_.size[s];
  }
  return change;
}

void State::run(OperatorIdx op) {
  MEMPLAN_ASSERT(is_ready(op));
  live_ += delta(op);
  for (const StorageIdx s : program_.touched[op]) ++used_[s];
  drop_ready(op);
  bits_[op >> 6] |= std::uint64_t{1} << (op & 63);
  hash_ ^= mix(static_cast<std::uint64_t>(op));
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
  add_ready(op);
  for (const StorageIdx s : program_.touched[op]) --used_[s];
  live_ -= delta(op);
}

void State::add_ready(OperatorIdx op) {
  place_[op] = static_cast<std::int32_t>(ready_.size());
  ready_.push_back(op);
}

void State::drop_ready(OperatorIdx op) {
  const std::int32_t at = place_[op];
  ready_[at] = ready_.back();
  place_[ready_[at]] = at;
  ready_.pop_back();
  place_[op] = -1;
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
