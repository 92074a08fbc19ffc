// Tests of recomputation: bounds and sequences of small programs against an exact search.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "again/backward.h"
#include "again/cut.h"
#include "again/repair.h"
#include "again/timeline.h"
#include "check.h"
#include "memplan/again.h"

using namespace memplan;

namespace {

struct Shape {
  int operators;
  bool is_plain;       // one output for each operator, nothing given, all may run again
  bool moves = false;  // most storages may be moved
};

class Builder {
 public:
  explicit Builder(unsigned seed) : random_(seed) {}

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int many) { return pick(1, many) == 1; }

  RecomputeProblem build(const Shape& shape) {
    const int n = pick(2, shape.operators);
    for (int v = 0; v < n; ++v) {
      problem_.program.workspace.push_back(!shape.is_plain && one_in(5) ? pick(0, 5) : 0);
      problem_.cost.push_back(one_in(8) ? 0 : pick(1, 9));
      problem_.again.push_back(!shape.is_plain && one_in(6) ? 0 : 1);
    }
    moves_ = shape.moves;
    problem_.program.user_begin.push_back(0);
    for (int v = 0; v < n; ++v) {
      const int outputs = shape.is_plain || !one_in(4) ? 1 : pick(0, 2);
      for (int i = 0; i < outputs; ++i) add(v, n, false);
    }
    if (!shape.is_plain) {
      for (int i = pick(0, 2); i > 0; --i) add(-1, n, true);
      if (one_in(5)) add(-1, n, false);
      if (one_in(3)) {
        const int from = pick(0, n - 2);
        problem_.program.arcs.push_back({from, pick(from + 1, n - 1)});
      }
    }
    return problem_;
  }

 private:
  void add(int maker, int n, bool is_given) {
    std::set<OperatorIdx> users;
    if (maker >= 0) users.insert(maker);
    const int first = maker < 0 ? 0 : maker + 1;
    if (first < n) {
      for (int i = pick(0, 3); i > 0; --i) users.insert(pick(first, n - 1));
    }
    problem_.program.size.push_back(one_in(9) ? 0 : pick(1, 9));
    problem_.program.given.push_back(is_given ? 1 : 0);
    problem_.program.wanted.push_back(one_in(6) ? 1 : 0);
    problem_.program.user.insert(problem_.program.user.end(), users.begin(), users.end());
    problem_.program.user_begin.push_back(static_cast<std::int64_t>(problem_.program.user.size()));
    problem_.maker.push_back(maker);
    problem_.move.push_back(moves_ && !one_in(4) ? pick(0, 12) : -1);
  }

  bool moves_ = false;
  std::mt19937 random_;
  RecomputeProblem problem_;
};

// The least extra cost over all sequences that fit: Dijkstra's search over what has run and what
// is present. `in_order`: first runs stay in the given order. What has been there and is absent was
// moved out when it was dropped, so that it can be moved back.
std::optional<std::int64_t> least_extra(const RecomputeProblem& problem, Bytes capacity,
                                        bool in_order) {
  const OrderProblem& program = problem.program;
  const int n = program.operators();
  const int m = program.storages();
  using Set = std::uint32_t;
  std::vector<Set> reads(n, 0), makes(n, 0), before(n, 0), users(m, 0);
  for (int s = 0; s < m; ++s) {
    for (std::int64_t i = program.user_begin[s]; i < program.user_begin[s + 1]; ++i) {
      const OperatorIdx user = program.user[i];
      users[s] |= Set{1} << user;
      (problem.maker[s] == user ? makes : reads)[user] |= Set{1} << s;
      if (problem.maker[s] >= 0 && problem.maker[s] != user) {
        before[user] |= Set{1} << problem.maker[s];
      }
    }
  }
  for (const Arc& arc : program.arcs) before[arc.to] |= Set{1} << arc.from;
  const auto bytes = [&](Set set) {
    Bytes sum = 0;
    for (int s = 0; s < m; ++s) sum += ((set >> s) & 1) != 0 ? program.size[s] : 0;
    return sum;
  };
  Set start = 0;
  Set wanted = 0;
  Set several = 0;
  Set movable = 0;
  Set needed = 0;  // of what is there before the first run
  for (int s = 0; s < m; ++s) {
    if (program.given[s] != 0) start |= Set{1} << s;
    const bool is_made = program.given[s] != 0 || users[s] != 0;
    if (program.wanted[s] != 0 && is_made) wanted |= Set{1} << s;
    if (program.given[s] == 0 && problem.maker[s] < 0) several |= Set{1} << s;
    if (problem.move[s] >= 0 && users[s] != 0) movable |= Set{1} << s;
    if (users[s] != 0 || program.wanted[s] != 0) needed |= Set{1} << s;
  }
  using State = std::pair<Set, Set>;
  std::map<State, std::int64_t> best;
  using Entry = std::tuple<std::int64_t, Set, Set>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto reach = [&](Set done, Set present, std::int64_t extra) {
    const auto found = best.find({done, present});
    if (found != best.end() && found->second <= extra) return;
    best[{done, present}] = extra;
    queue.push({extra, done, present});
  };
  if (bytes(start & needed) > capacity) return std::nullopt;
  reach(0, start, 0);
  const Set all = (Set{1} << n) - 1;
  while (!queue.empty()) {
    const auto [extra, done, present] = queue.top();
    queue.pop();
    if (best[{done, present}] < extra) continue;
    if (done == all && (present & wanted) == wanted) return extra;
    for (int s = 0; s < m; ++s) {
      if (((present >> s) & 1) == 0) continue;
      if ((((several & ~movable) >> s) & 1) != 0 && (users[s] & ~done) != 0) continue;
      reach(done, present & ~(Set{1} << s), extra);
    }
    for (int s = 0; s < m; ++s) {
      const Set bit = Set{1} << s;
      const Set makers = problem.maker[s] >= 0 ? Set{1} << problem.maker[s] : users[s];
      const bool was_there = program.given[s] != 0 || (makers & done) != 0;
      if ((movable & bit) == 0 || (present & bit) != 0 || !was_there) continue;
      if (bytes(present | bit) <= capacity) reach(done, present | bit, extra + problem.move[s]);
    }
    for (int v = 0; v < n; ++v) {
      const bool is_again = ((done >> v) & 1) != 0;
      if (is_again && problem.again[v] == 0) continue;
      if (!is_again && (before[v] & ~done) != 0) continue;
      if (!is_again && in_order && done != (Set{1} << v) - 1) continue;
      Set begun = 0;  // by several writers, of which one has run
      for (int s = 0; s < m; ++s) {
        if (((several >> s) & 1) != 0 && (users[s] & done) != 0) begun |= Set{1} << s;
      }
      const Set absent = reads[v] & ~present;
      if ((absent & ~(several & ~begun)) != 0) continue;
      const Set next = present | makes[v] | reads[v];
      if (bytes(next) + program.workspace[v] > capacity) continue;
      reach(done | (Set{1} << v), next, extra + (is_again ? problem.cost[v] : 0));
    }
  }
  return std::nullopt;
}

// The certificate on the arcs of the problem; returns the bound that it proves.
class Referee {
 public:
  Referee(const RecomputeProblem& problem, Bytes capacity, OperatorIdx op)
      : problem_(problem), program_(problem.program), capacity_(capacity), op_(op) {
    std::set<std::pair<OperatorIdx, OperatorIdx>> arcs;
    for (const Arc& arc : program_.arcs) arcs.insert({arc.from, arc.to});
    for (StorageIdx s = 0; s < program_.storages(); ++s) {
      for (const OperatorIdx user : users(s)) {
        if (problem.maker[s] >= 0 && user != problem.maker[s])
          arcs.insert({problem.maker[s], user});
      }
    }
    side_.assign(program_.workspace.size(), -1);
    side_[op] = 1;
    for (std::size_t i = 0; i < side_.size(); ++i) {
      for (const auto& [from, to] : arcs) {
        if (to == op || side_[to] == 0) side_[from] = 0;
      }
      for (const auto& [from, to] : arcs) {
        if (side_[from] == 1) side_[to] = 1;
      }
    }
    for (const auto& [from, to] : arcs) free_.insert({node(to), node(from)});
  }

  Bytes check_floor(const std::vector<FlowArc>& flow) {
    return own_bytes() + sum(flow, {}, 1 << 4, 4, 0, 0);
  }

  std::int64_t check_proof(const RecomputeProof& proof) {
    CHECK(are_all_cases(proof.leaves, 0));
    std::int64_t bound = std::int64_t{1} << 62;
    for (std::size_t v = 0; v < problem_.cost.size(); ++v) {
      CHECK(problem_.again[v] == 0 || problem_.cost[v] % proof.unit == 0);
    }
    for (StorageIdx s = 0; s < program_.storages(); ++s) {
      CHECK(!can_move(s) || problem_.move[s] % proof.unit == 0);
    }
    for (const CutLeaf& leaf : proof.leaves) {
      const std::int64_t flow =
          sum(leaf.flow, leaf.decisions, leaf.price, proof.shift, proof.unit, proof.scale);
      const std::int64_t value =
          flow - again::price_of(leaf.price, capacity_ - own_bytes(), proof.shift);
      const std::int64_t one = std::int64_t{1} << proof.scale;
      bound = std::min(bound, value <= 0 ? 0 : ((value - 1) / one + 1) * proof.unit);
    }
    return bound;
  }

 private:
  std::vector<OperatorIdx> users(StorageIdx s) const {
    return {program_.user.begin() + program_.user_begin[s],
            program_.user.begin() + program_.user_begin[s + 1]};
  }
  bool touches(StorageIdx s) const {
    const std::vector<OperatorIdx> all = users(s);
    return std::find(all.begin(), all.end(), op_) != all.end();
  }
  bool can_move(StorageIdx s) const {
    return problem_.move[s] >= 0 && program_.user_begin[s] < program_.user_begin[s + 1];
  }
  bool is_always(StorageIdx s) const {
    return program_.given[s] != 0 && program_.wanted[s] != 0 && !can_move(s);
  }
  std::int64_t node(OperatorIdx u) const { return side_[u] >= 0 ? side_[u] : 2 + u; }

  Bytes own_bytes() const {
    Bytes bytes = program_.workspace[op_];
    for (StorageIdx s = 0; s < program_.storages(); ++s) {
      if (touches(s) || is_always(s)) bytes += program_.size[s];
    }
    return bytes;
  }

  // Whether the decisions of the leaves, from a depth on, are the leaves of a tree.
  static bool are_all_cases(const std::vector<CutLeaf>& leaves, std::size_t depth) {
    if (leaves.size() == 1 && leaves.front().decisions.size() == depth) return true;
    std::map<RunChoice, std::vector<CutLeaf>> sides;
    for (const CutLeaf& leaf : leaves) {
      if (leaf.decisions.size() <= depth) return false;
      if (leaf.decisions[depth].op != leaves.front().decisions[depth].op) return false;
      sides[leaf.decisions[depth].choice].push_back(leaf);
    }
    if (sides.size() != 2) return false;
    const auto first = static_cast<int>(sides.begin()->first);
    const auto second = static_cast<int>(sides.rbegin()->first);
    if (first % 2 != 0 || second != first + 1) return false;
    for (const auto& [choice, side] : sides) {
      if (!are_all_cases(side, depth + 1)) return false;
    }
    return true;
  }

  static std::int64_t scaled(std::int64_t cost, std::int64_t unit, std::int32_t scale) {
    return unit == 0 ? 0 : (cost / unit) << scale;
  }

  std::int64_t sum(const std::vector<FlowArc>& flow, const std::vector<Decision>& decisions,
                   std::int64_t price, std::int32_t shift, std::int64_t unit, std::int32_t scale) {
    const std::int64_t n = program_.operators();
    auto free = free_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> capacity;
    for (OperatorIdx k = 0; k < n; ++k) {
      if (problem_.again[k] == 0) continue;
      capacity[{node(k), 2 + n + k}] = scaled(problem_.cost[k], unit, scale);
    }
    std::map<OperatorIdx, RunChoice> moves;
    for (const Decision& decision : decisions) {
      if (decision.op < n) continue;
      const auto s = static_cast<StorageIdx>(decision.op - n);
      moves[s] = decision.choice;
      if (decision.choice != RunChoice::kAgain) continue;
      capacity[{0, 1}] += scaled(problem_.move[s], unit, scale);
      if (problem_.maker[s] >= 0) free.insert({0, node(problem_.maker[s])});
    }
    for (StorageIdx s = 0; s < program_.storages(); ++s) {
      const OperatorIdx maker = problem_.maker[s];
      if (touches(s) || is_always(s) || (maker >= 0 && side_[maker] == 1)) continue;
      const std::int64_t over = 2 + 2 * n + 2 * std::int64_t{s} + 1;
      std::int64_t begin = 0;
      if (maker >= 0) begin = problem_.again[maker] != 0 ? 2 + n + maker : node(maker);
      if (maker < 0 && program_.given[s] == 0) {
        begin = over - 1;
        for (const OperatorIdx user : users(s)) free.insert({node(user), begin});
      }
      std::int64_t& keeping = capacity[{begin, over}];
      keeping = again::price_of(price, program_.size[s], shift);
      if (can_move(s) && moves.count(s) == 0) {
        keeping = std::min(keeping, scaled(problem_.move[s], unit, scale));
      } else if (can_move(s) && moves[s] == RunChoice::kAgain) {
        keeping = 0;
      }
      if (program_.wanted[s] != 0) free.insert({over, 1});
      for (const OperatorIdx user : users(s)) {
        if (user == maker) continue;
        free.insert({over, node(user)});
        if (problem_.again[user] != 0) free.insert({over, 2 + n + user});
      }
    }
    for (const Decision& decision : decisions) {
      if (decision.op >= n) continue;
      const std::int64_t at = node(decision.op);
      if (decision.choice == RunChoice::kNotAgain) free.insert({at, 2 + n + decision.op});
      if (decision.choice == RunChoice::kAgain) free.insert({2 + n + decision.op, 1});
      if (decision.choice == RunChoice::kAgain || decision.choice == RunChoice::kBefore) {
        free.insert({0, at});
      }
      if (decision.choice == RunChoice::kAfter) free.insert({at, 1});
    }
    std::map<std::int64_t, std::int64_t> gain;
    for (const FlowArc& arc : flow) {
      CHECK(arc.amount > 0);
      if (free.count({arc.from, arc.to}) == 0) {
        const auto found = capacity.find({arc.from, arc.to});
        CHECK(found != capacity.end() && arc.amount <= found->second);
        found->second -= arc.amount;
      }
      gain[arc.from] -= arc.amount;
      gain[arc.to] += arc.amount;
    }
    for (const auto& [at, amount] : gain) CHECK(at <= 1 || amount == 0);
    return gain[1];
  }

  const RecomputeProblem& problem_;
  const OrderProblem& program_;
  Bytes capacity_;
  OperatorIdx op_;
  std::vector<int> side_;  // by operator: 0 before the moment, 1 not before it, -1 either
  std::set<std::pair<std::int64_t, std::int64_t>> free_;
};

struct Tally {
  int possible = 0;
  int found = 0;
  int proved = 0;  // bound = least
  int best = 0;    // found = least
  int closed = 0;  // all three are equal
};

// Moves and re-runs together cost no more than either alone with the same budget.
void check_each_way(const RecomputeProblem& problem, Bytes capacity,
                    const RecomputeOptions& options, const RecomputeResult& both) {
  RecomputeProblem runs = problem;
  RecomputeProblem moves = problem;
  runs.move.assign(runs.move.size(), -1);
  moves.again.assign(moves.again.size(), 0);
  for (const RecomputeProblem& part : {runs, moves}) {
    const RecomputeResult found = recompute(part, capacity, options);
    CHECK(!has_plan(found.status) || found.extra >= both.extra);
  }
}

void check_against_all(unsigned seed, const Shape& shape, bool free_order, Tally& tally) {
  Builder builder(seed);
  const RecomputeProblem problem = builder.build(shape);
  std::vector<OperatorIdx> given(problem.cost.size());
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = static_cast<OperatorIdx>(i);
  const Bytes peak = load_of(problem, given).peak;
  const Bytes floor = recompute(problem, peak).floor;
  CHECK(floor <= peak);
  const Bytes capacity = builder.pick(static_cast<int>(floor * 19 / 20), static_cast<int>(peak));
  RecomputeOptions options;
  options.free_order = free_order;
  options.budget.nodes = 400;
  const RecomputeResult result = recompute(problem, capacity, options);
  const std::optional<std::int64_t> least = least_extra(problem, capacity, false);
  const std::optional<std::int64_t> ordered = least_extra(problem, capacity, true);
  const std::optional<std::int64_t> allowed = free_order ? least : ordered;
  if (shape.moves && has_plan(result.status)) check_each_way(problem, capacity, options, result);
  if (result.floor_op >= 0) {
    Referee referee(problem, capacity, result.floor_op);
    CHECK_EQ(referee.check_floor(result.floor_flow), result.floor);
  }
  if (result.certificate.op >= 0) {
    Referee referee(problem, capacity, result.certificate.op);
    CHECK_EQ(referee.check_proof(result.certificate), result.bound);
  } else {
    CHECK_EQ(result.bound, 0);
  }
  CHECK(!least || capacity >= result.floor);
  CHECK(!least || result.bound <= *least);
  CHECK(!ordered || result.order_bound <= *ordered);
  CHECK(result.bound <= result.order_bound);
  if (result.status == Status::kInfeasible) CHECK(!allowed);
  if (!has_plan(result.status)) {
    CHECK(result.runs.empty());
  } else {
    const Load load = load_of(problem, result.runs);
    CHECK_EQ(load.peak, result.peak);
    CHECK_EQ(load.extra, result.extra);
    CHECK(load.peak <= capacity);
    CHECK(allowed && load.extra >= *allowed);
    CHECK(result.status != Status::kOptimal || load.extra == *allowed);
  }
  if (!allowed) return;
  ++tally.possible;
  tally.found += has_plan(result.status) ? 1 : 0;
  tally.proved += (free_order ? result.bound : result.order_bound) == *allowed ? 1 : 0;
  tally.best += has_plan(result.status) && result.extra == *allowed ? 1 : 0;
  tally.closed += result.status == Status::kOptimal ? 1 : 0;
}

// A step of training: operator i + 1 reads what i made, and operator 2 n - 1 - i reads what i and
// the one before it made.
RecomputeProblem chain(int layers, Bytes size, std::int64_t cost) {
  RecomputeProblem problem;
  const int n = 2 * layers;
  problem.program.workspace.assign(n, 0);
  problem.cost.assign(n, cost);
  problem.again.assign(n, 1);
  problem.program.user_begin = {0};
  for (int v = 0; v < n; ++v) {
    problem.program.size.push_back(size);
    problem.program.given.push_back(0);
    problem.program.wanted.push_back(v == n - 1 ? 1 : 0);
    problem.maker.push_back(v);
    problem.move.push_back(-1);
    problem.program.user.push_back(v);
    if (v + 1 < n) problem.program.user.push_back(v + 1);
    if (v + 1 < layers) problem.program.user.push_back(n - 1 - v);
    problem.program.user_begin.push_back(static_cast<std::int64_t>(problem.program.user.size()));
  }
  return problem;
}

std::vector<OperatorIdx> first_runs(const std::vector<OperatorIdx>& runs) {
  std::vector<OperatorIdx> first;
  for (const OperatorIdx op : runs) {
    if (std::find(first.begin(), first.end(), op) == first.end()) first.push_back(op);
  }
  return first;
}

TEST(the_same_budget_in_nodes_gives_the_same_answer) {
  const RecomputeProblem problem = chain(20, 100, 7);
  RecomputeOptions options;
  options.budget.nodes = 600;
  options.free_order = false;
  const RecomputeResult one = recompute(problem, 700, options);
  const RecomputeResult other = recompute(problem, 700, options);
  CHECK(has_plan(one.status) && one.runs == other.runs);
  CHECK(one.bound == other.bound && one.nodes == other.nodes);
  CHECK(std::is_sorted(one.runs.begin(), one.runs.begin() + 20));
  const std::vector<OperatorIdx> first = first_runs(one.runs);
  CHECK(std::is_sorted(first.begin(), first.end()));
}

// A round of a small program is a node, and one of a large program is as many as it takes in time.
TEST(a_node_has_a_size) {
  const auto fits_with = [](int layers, std::int64_t nodes) {
    const RecomputeProblem problem = chain(layers, 100, 7);
    std::vector<OperatorIdx> order(problem.cost.size());
    std::iota(order.begin(), order.end(), 0);
    const again::Model model = again::make_model(problem);
    Stopper stopper(1e9);
    Counter counter(nodes, stopper);
    return again::Repair(model, 50 * layers, true, counter).start(order);
  };
  CHECK(fits_with(30, 3));
  CHECK(!fits_with(250, 3));
  CHECK(fits_with(250, 300));
}

TEST(a_chain_fits_down_to_its_floor) {
  const RecomputeProblem problem = chain(12, 100, 7);
  RecomputeOptions options;
  options.budget.nodes = 600;
  const Bytes floor = recompute(problem, 0).floor;
  CHECK_EQ(floor, 300);
  CHECK(recompute(problem, floor - 1, options).status == Status::kInfeasible);
  const RecomputeResult result = recompute(problem, floor, options);
  CHECK(has_plan(result.status) && load_of(problem, result.runs).peak == floor);
  CHECK(result.bound % 7 == 0 && result.extra % 7 == 0);
}

// What is given and what is wanted is there, though nothing runs.
TEST(a_program_without_operators_fits_into_what_is_given) {
  RecomputeProblem problem;
  problem.program.user_begin = {0};
  CHECK(recompute(problem, 0).status == Status::kOptimal);
  problem.program.size = {64};
  problem.program.given = {1};
  problem.program.wanted = {1};
  problem.program.user_begin = {0, 0};
  problem.maker = {-1};
  problem.move = {-1};
  const RecomputeResult below = recompute(problem, 63);
  CHECK(below.status == Status::kInfeasible && below.floor == 64);
  const RecomputeResult result = recompute(problem, 64);
  CHECK(result.status == Status::kOptimal && result.peak == 64 && result.runs.empty());
}

// Sizes near 2^62 and costs near 2^53 give the answer of small numbers.
TEST(large_numbers_do_not_change_the_answer) {
  const RecomputeProblem problem = chain(12, 100, 7);
  RecomputeProblem large = problem;
  for (Bytes& size : large.program.size) size *= kMaxBytes / 2400;
  for (std::int64_t& cost : large.cost) cost *= (std::int64_t{1} << 53) / 200;
  RecomputeOptions options;
  options.budget.nodes = 3000;
  for (const Bytes capacity : {900, 1000, 1100}) {
    const RecomputeResult small = recompute(problem, capacity, options);
    const RecomputeResult found = recompute(large, capacity * (kMaxBytes / 2400), options);
    CHECK(small.status == Status::kOptimal && found.status == Status::kOptimal);
    CHECK_EQ(found.extra, small.extra * ((std::int64_t{1} << 53) / 200));
    Referee referee(large, capacity * (kMaxBytes / 2400), found.certificate.op);
    CHECK_EQ(referee.check_proof(found.certificate), found.bound);
  }
}

TEST(a_product_of_price_and_bytes_is_exact) {
  CHECK_EQ(again::price_of(kMaxBytes, kMaxBytes, 66), std::int64_t{1} << 58);
  CHECK_EQ(again::price_of((std::int64_t{1} << 62) - 1, 3, 4),
           (3 * ((std::int64_t{1} << 60) - 1)) / 4);
  CHECK_EQ(again::price_of(1000003, 999983, 4), 1000003LL * 999983 / 16);
  CHECK_EQ(again::price_of(kMaxBytes, kMaxBytes, 4), std::int64_t{1} << 60);
}

TEST(a_wrong_problem_is_refused) {
  const auto refused = [](const auto& change) {
    RecomputeProblem problem = chain(3, 10, 1);
    change(problem);
    return !memplan::check(problem).empty();
  };
  CHECK(!refused([](RecomputeProblem&) {}));
  CHECK(refused([](RecomputeProblem& problem) { problem.cost[0] = -1; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.cost[0] = std::int64_t{1} << 53; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.cost.pop_back(); }));
  CHECK(refused([](RecomputeProblem& problem) { problem.maker.pop_back(); }));
  CHECK(refused([](RecomputeProblem& problem) { problem.maker[0] = 1; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.maker[0] = 99; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.program.given[0] = 1; }));
  CHECK(!refused([](RecomputeProblem& problem) { problem.move[0] = 5; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.move[0] = -2; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.move[0] = std::int64_t{1} << 53; }));
  CHECK(refused([](RecomputeProblem& problem) { problem.program.in_place.push_back({1, 0, 1}); }));
}

TEST(an_illegal_sequence_has_no_load) {
  RecomputeProblem problem = chain(2, 10, 1);
  problem.again[0] = 0;
  problem.move[1] = 7;
  CHECK_EQ(load_of(problem, {0, 1, 2, 1, 3}).extra, 1);
  CHECK_EQ(load_of(problem, {0, 1, 2, 5, 3}).extra, 7);
  const std::vector<std::vector<OperatorIdx>> illegal{
      {0, 1, 2},        {1, 0, 2, 3},    {0, 1, 0, 2, 3}, {0, 1, 2, 9},
      {-1, 0, 1, 2, 3}, {0, 1, 2, 3, 4}, {0, 5, 1, 2, 3}};
  for (const std::vector<OperatorIdx>& runs : illegal) {
    bool refused = false;
    try {
      load_of(problem, runs);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
}

// At its floor, operators of a chain run again for each later one in turn, which one moment cannot
// see.
TEST(several_moments_bound_more_than_one) {
  const RecomputeProblem problem = chain(8, 100, 7);
  RecomputeOptions options;
  options.budget.nodes = 3000;
  options.free_order = false;
  const RecomputeResult found = recompute(problem, 300, options);
  options.rules.moments = false;
  const RecomputeResult one = recompute(problem, 300, options);
  CHECK(found.status == Status::kOptimal && found.extra == found.order_bound);
  CHECK(one.order_bound < found.order_bound && one.extra >= found.extra);
  CHECK(found.order_certificate.moments.size() > 1);
  CHECK(one.order_bound == one.bound || one.order_certificate.moments.size() == 1);
  for (const OrderLeaf& leaf : found.order_certificate.leaves) {
    CHECK_EQ(leaf.prices.size(), found.order_certificate.moments.size());
    for (const OrderNeed& need : leaf.needs) CHECK(need.amount > 0);
  }
}

TEST(an_interrupt_ends_the_search_with_what_is_found) {
  RecomputeOptions options;
  options.free_order = false;
  bool stops = false;
  options.interrupt = [&] { return stops; };
  stops = true;
  const RecomputeResult result = recompute(chain(400, 100, 7), 4000, options);
  CHECK(result.interrupted);
  CHECK(!has_plan(result.status) || result.peak <= 4000);
}

void check_many(unsigned rounds, bool moves) {
  Tally tally;
  for (unsigned seed = 0; seed < rounds; ++seed) {
    check_against_all(seed, {moves ? 6 : 7, seed % 3 == 0, moves}, seed % 4 != 0, tally);
  }
  std::printf("%d possible, %d found, %d best, %d proved, %d closed\n", tally.possible, tally.found,
              tally.best, tally.proved, tally.closed);
  CHECK(tally.proved * 100 >= tally.possible * 92);
  CHECK(tally.best * 100 >= tally.possible * 95);
}

// Whether every first run comes after those of the operators before it in the given order.
bool keeps_order(const std::vector<OperatorIdx>& runs) {
  OperatorIdx next = 0;
  for (const OperatorIdx op : runs) next += op == next ? 1 : 0;
  return static_cast<std::size_t>(next) == std::set(runs.begin(), runs.end()).size();
}

TEST(sequences_from_the_end_are_legal_and_fit) {
  int found = 0;
  const unsigned rounds = check::rounds(300, 20000);
  for (unsigned seed = 0; seed < rounds; ++seed) {
    Builder builder(seed);
    const RecomputeProblem problem = builder.build({12, seed % 3 == 0});
    std::vector<OperatorIdx> order(problem.cost.size());
    std::iota(order.begin(), order.end(), 0);
    const again::Model model = again::make_model(problem);
    for (const int percent : {100, 85, 70, 55}) {
      const Bytes capacity = load_of(problem, order).peak * percent / 100;
      again::BackwardOptions options;
      options.free_order = builder.one_in(2);
      options.thorough = builder.one_in(2);
      options.width = static_cast<std::size_t>(builder.pick(1, 8));
      options.price = again::usual_byte_price(model, capacity) + builder.pick(-4, 6);
      Stopper stopper(1e9);
      Counter counter(std::int64_t{1} << 40, stopper);
      const auto runs = again::run_backward(model, order, capacity, options, counter);
      if (!runs) continue;
      ++found;
      CHECK(load_of(problem, *runs).peak <= capacity);
      CHECK(options.free_order || keeps_order(*runs));
    }
  }
  CHECK(found > static_cast<int>(rounds));
}

TEST(bounds_and_sequences_agree_with_an_exact_search) {
  check_many(check::rounds(400, 20000), false);
}

TEST(bounds_and_moves_agree_with_an_exact_search) { check_many(check::rounds(300, 20000), true); }

}  // namespace

TEST_MAIN
