#include "again/cut.h"

#include <algorithm>
#include <utility>

#include "util/invariants.h"

namespace memplan::again {

namespace {

constexpr std::int32_t kSource = Flow::kSource;
constexpr std::int32_t kSink = Flow::kSink;
constexpr std::int32_t kNowhere = -1;
constexpr std::int64_t kInfinite = std::int64_t{1} << 60;
constexpr std::int32_t kBitsOfCosts = 53;
constexpr std::int32_t kBitsOfPrices = 59;
constexpr std::int32_t kMostScale = 40;

}  // namespace

std::int32_t bits_of(std::int64_t number) {
  std::int32_t bits = 0;
  while (number > 0) {
    ++bits;
    number >>= 1;
  }
  return bits;
}

Scaling choose_scaling(const Model& model, Bytes capacity) {
  Scaling scaling;
  scaling.scale = std::min(kMostScale, kBitsOfCosts - bits_of(model.total));
  // A price of 2^62 for the capacity is 2^59 at most.
  scaling.shift = bits_of(std::max<Bytes>(capacity, 1)) + 62 - kBitsOfPrices;
  scaling.highest_price = std::int64_t{1} << 62;
  return scaling;
}

std::int64_t price_of(std::int64_t price, Bytes bytes, std::int32_t shift) {
  MEMPLAN_ASSERT(price >= 0 && bytes >= 0);
  const auto a = static_cast<std::uint64_t>(price);
  const auto b = static_cast<std::uint64_t>(bytes);
  // The product in two words of 64 bits, by halves.
  constexpr std::uint64_t kHalf = 0xffffffffULL;
  const std::uint64_t low = (a & kHalf) * (b & kHalf);
  const std::uint64_t middle = (a >> 32) * (b & kHalf) + (low >> 32);
  const std::uint64_t other = (a & kHalf) * (b >> 32) + (middle & kHalf);
  const std::uint64_t high = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
  const std::uint64_t word = (other << 32) | (low & kHalf);
  if (shift >= 64) return static_cast<std::int64_t>(high >> (shift - 64));
  if ((high >> (shift - 4)) != 0) return kInfinite;
  const std::uint64_t rest = shift == 0 ? 0 : high << (64 - shift);
  return static_cast<std::int64_t>((word >> shift) | rest);
}

CutNetwork::CutNetwork(const Model& model, const Scaling& scaling, OperatorIdx op)
    : model_(model), scaling_(scaling), op_(op), node_of_(model.operators(), kNowhere) {
  order::mark_reached(model.before, op, kEntry, node_of_);
  order::mark_reached(model.after, op, kSink, node_of_);
  node_of_[op] = kSink;
  build();
}

CutNetwork::CutNetwork(const Model& model, const Scaling& scaling, OperatorIdx op,
                       const std::vector<std::uint8_t>& done)
    : model_(model), scaling_(scaling), op_(op), node_of_(model.operators(), kSink) {
  for (OperatorIdx u = 0; u < model.operators(); ++u) {
    if (done[u] != 0) node_of_[u] = kEntry;
  }
  build();
}

void CutNetwork::build() {
  names_ = {-1, 1, 0};
  again_node_.assign(node_of_.size(), kNowhere);
  again_arc_.assign(node_of_.size(), kNowhere);
  keep_arc_.assign(model_.size.size(), kNowhere);
  arcs_.push_back({kSource, kEntry, kInfinite, 0, 0});
  for (OperatorIdx u = 0; u < model_.operators(); ++u) {
    if (node_of_[u] == kNowhere) node_of_[u] = add_node(2 + u);
  }
  for (OperatorIdx u = 0; u < model_.operators(); ++u) {
    if (!is_open(u)) continue;
    for (const OperatorIdx other : model_.before[u]) {
      add_arc(node_of_[u], node_of_[other], kInfinite);
    }
  }
  own_ = own_bytes(model_, op_);
  std::vector<std::uint8_t> own(model_.size.size(), 0);
  for (const StorageIdx s : model_.reads[op_]) own[s] = 1;
  for (const StorageIdx s : model_.makes[op_]) own[s] = 1;
  std::vector<std::int32_t> over_of(model_.size.size(), kNowhere);
  for (StorageIdx s = 0; s < model_.storages(); ++s) {
    if (own[s] == 0) add_storage(s, over_of);
  }
  for (OperatorIdx k = 0; k < model_.operators(); ++k) {
    if (again_node_[k] == kNowhere) continue;
    for (const StorageIdx s : model_.reads[k]) {
      if (over_of[s] != kNowhere) add_arc(over_of[s], again_node_[k], kInfinite);
    }
  }
  plain_arcs_ = arcs_.size();
}

std::int32_t CutNetwork::add_node(std::int64_t name) {
  names_.push_back(name);
  return static_cast<std::int32_t>(names_.size()) - 1;
}

void CutNetwork::add_arc(std::int32_t from, std::int32_t to, std::int64_t fixed) {
  if (from != to && to != kEntry && from != kSink) arcs_.push_back({from, to, fixed, 0, 0});
}

std::int32_t CutNetwork::again_node(OperatorIdx k) {
  if (again_node_[k] == kNowhere) {
    again_node_[k] = add_node(2 + model_.operators() + k);
    again_arc_[k] = static_cast<std::int32_t>(arcs_.size());
    add_arc(node_of_[k], again_node_[k], cost_of(k));
  }
  return again_node_[k];
}

void CutNetwork::add_storage(StorageIdx s, std::vector<std::int32_t>& over_of) {
  const OperatorIdx maker = model_.maker[s];
  const bool is_given = model_.given[s] != 0;
  if (model_.stays(s)) return;
  if (maker != kNoOperator && node_of_[maker] == kSink) return;
  if (maker == kNoOperator && !is_given && model_.readers[s].size() == 0) return;
  if (model_.size[s] == 0) return;
  const std::int64_t name = 2 + 2 * std::int64_t{model_.operators()} + 2 * std::int64_t{s};
  std::int32_t begin = kEntry;
  if (maker != kNoOperator) {
    begin = model_.can_drop[s] != 0 ? again_node(maker) : node_of_[maker];
  } else if (!is_given) {
    begin = add_node(name);
    for (const OperatorIdx user : model_.readers[s]) add_arc(node_of_[user], begin, kInfinite);
  }
  const std::int32_t over = over_of[s] = add_node(name + 1);
  kept_.push_back(s);
  keep_arc_[s] = static_cast<std::int32_t>(arcs_.size());
  arcs_.push_back({begin, over, 0, model_.size[s], move_limit(s)});
  if (model_.wanted[s] != 0) add_arc(over, kSink, kInfinite);
  for (const OperatorIdx reader : model_.readers[s]) add_arc(over, node_of_[reader], kInfinite);
}

// What the price of a storage is at most: what moving it costs.
std::int64_t CutNetwork::move_limit(StorageIdx s) const {
  return model_.can_move(s) ? cost_of(model_.move_of(s)) : kInfinite;
}

void CutNetwork::decide(const std::vector<Decision>& decisions) {
  for (const Decision& decision : decided_) {
    const OperatorIdx k = decision.op;
    if (k >= model_.operators()) {
      const StorageIdx s = k - model_.operators();
      arcs_[keep_arc_[s]].most = move_limit(s);
    } else if (decision.choice == RunChoice::kNotAgain) {
      arcs_[again_arc_[k]].fixed = cost_of(k);
    }
  }
  decided_ = decisions;
  arcs_.resize(plain_arcs_);
  for (const Decision& decision : decisions) {
    const OperatorIdx k = decision.op;
    if (k >= model_.operators()) {
      decide_move(k - model_.operators(), decision.choice);
      continue;
    }
    switch (decision.choice) {
      case RunChoice::kNotAgain:
        arcs_[again_arc_[k]].fixed = kInfinite;
        break;
      case RunChoice::kAgain:
        add_arc(kEntry, node_of_[k], kInfinite);
        add_arc(again_node_[k], kSink, kInfinite);
        break;
      case RunChoice::kAfter:
        add_arc(node_of_[k], kSink, kInfinite);
        break;
      case RunChoice::kBefore:
        add_arc(kEntry, node_of_[k], kInfinite);
        break;
    }
  }
}

void CutNetwork::decide_move(StorageIdx s, RunChoice choice) {
  arcs_[keep_arc_[s]].most = choice == RunChoice::kAgain ? 0 : kInfinite;
  if (choice != RunChoice::kAgain) return;
  add_arc(kEntry, kSink, cost_of(model_.move_of(s)));
  const OperatorIdx maker = model_.maker[s];
  if (maker != kNoOperator) add_arc(kEntry, node_of_[maker], kInfinite);
}

CutNetwork::Solved CutNetwork::solve(std::int64_t price, Bytes capacity,
                                     const Solved* below) const {
  Solved solved{{}, below != nullptr ? below->flow : Flow(names_.size()), 0};
  if (below != nullptr) {
    solved.amount = below->amount;
    for (std::size_t i = 0; i < arcs_.size(); ++i) {
      if (arcs_[i].bytes == 0) continue;
      solved.flow.raise(i, capacity_of(arcs_[i], price) - capacity_of(arcs_[i], below->side.price));
    }
  } else {
    for (const CutArc& arc : arcs_) {
      solved.flow.add(arc.from, arc.to, capacity_of(arc, price));
    }
  }
  solved.amount += solved.flow.maximize();
  solved.side.price = price;
  solved.side.value = solved.amount - price_of(price, capacity - own_, scaling_.shift);
  read_side(solved.side, solved.flow, capacity);
  return solved;
}

void CutNetwork::read_side(CutSide& side, const Flow& flow, Bytes capacity) const {
  side.excess = own_ - capacity;
  side.again.assign(model_.again.size(), 0);
  for (const StorageIdx s : kept_) {
    const CutArc& arc = arcs_[keep_arc_[s]];
    if (!flow.is_reached(arc.from) || flow.is_reached(arc.to)) continue;
    if (arc.most <= price_of(side.price, arc.bytes, scaling_.shift)) {
      side.again[model_.move_of(s)] = 1;
      side.cost += arc.most;
    } else {
      side.excess += arc.bytes;
    }
  }
  for (const Decision& decision : decided_) {
    if (decision.op < model_.operators() || decision.choice != RunChoice::kAgain) continue;
    side.again[decision.op] = 1;
    side.cost += cost_of(decision.op);
  }
  side.done.assign(node_of_.size(), 0);
  for (OperatorIdx u = 0; u < model_.operators(); ++u) {
    if (!flow.is_reached(node_of_[u])) continue;
    side.done[u] = 1;
    if (again_arc_[u] == kNowhere || flow.is_reached(again_node_[u])) continue;
    side.again[u] = 1;
    side.cost += cost_of(u);
  }
}

Bytes CutNetwork::floor(std::vector<FlowArc>* named_flow) const {
  Flow flow(names_.size());
  for (const CutArc& arc : arcs_) {
    const bool is_cost = arc.fixed > 0 && arc.fixed < kInfinite;
    const Bytes kept = is_cost || arc.most < kInfinite ? 0 : arc.bytes;
    flow.add(arc.from, arc.to, arc.fixed == kInfinite ? kMaxBytes : kept);
  }
  const Bytes bytes = own_ + flow.maximize();
  if (named_flow != nullptr) *named_flow = named(flow);
  return bytes;
}

std::vector<FlowArc> CutNetwork::named(const Flow& flow) const {
  std::vector<FlowArc> arcs;
  flow.for_each_arc([&](std::int32_t from, std::int32_t to, Bytes amount) {
    if (from != kSource) arcs.push_back({names_[from], names_[to], amount});
  });
  return arcs;
}

}  // namespace memplan::again
