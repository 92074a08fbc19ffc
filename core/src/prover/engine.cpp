#include "prover/engine.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "util/invariants.h"
#include "util/luby.h"
#include "util/random.h"

namespace memplan::prover {

using exact::Verdict;

namespace {

constexpr std::int64_t kRestartUnit = 64;        // conflicts
constexpr std::int64_t kStepsInOneGo = 1 << 20;  // without a look at the clock
constexpr std::int64_t kCheckEvery = 64;         // conflicts, where invariants are checked
constexpr std::int64_t kFirstReduction = 2000;
constexpr std::int64_t kReductionGrowth = 300;

std::int64_t sum_or_most(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return b > most - a ? most : a + b;
}

// The proof format cannot express sums of undecided buffers.
ProverOptions with_log(ProverOptions options, const ProofLog* log) {
  options.learning = options.learning || log != nullptr;
  options.cut_sums = options.cut_sums && log == nullptr;
  return options;
}

}  // namespace

std::unique_ptr<Engine> Engine::make(const exact::Task& task, const ProverOptions& options,
                                     std::uint64_t seed, ProofLog* log, const Halt& halt) {
  const ProverOptions all = with_log(options, log);
  Model model(task, all, log != nullptr, halt);
  if (model.halted) return nullptr;
  std::unique_ptr<Engine> engine(new Engine(std::move(model), all, log, halt));
  if (!engine->trail_.is_made()) return nullptr;
  engine->begin(seed);
  return engine;
}

Engine::Engine(const exact::Task& task, const ProverOptions& options, std::uint64_t seed,
               ProofLog* log)
    : Engine(Model(task, with_log(options, log), log != nullptr), with_log(options, log), log, {}) {
  begin(seed);
}

Engine::Engine(Model model, const ProverOptions& options, ProofLog* log, const Halt& halt)
    : options_(options),
      model_(std::move(model)),
      log_(log),
      trail_(model_, halt),
      clauses_(model_, trail_),
      propagator_(model_, options_, trail_, clauses_),
      order_(model_.arcs / 2),
      analysis_(model_, options_, trail_, clauses_, order_, log),
      limit_(std::numeric_limits<Bytes>::max()),
      next_restart_(kRestartUnit),
      next_reduction_(kFirstReduction) {}

void Engine::begin(std::uint64_t seed) {
  for (int pair = 0; pair < model_.arcs / 2; ++pair) {
    phase_.push_back(static_cast<char>(mix(seed * 1000003 + static_cast<std::uint64_t>(pair)) & 1));
  }
  for (const Bytes floor : model_.foundation.floor) offsets_.push_back(floor * model_.unit);
  logged_ = trail_.size();
  if (log_ != nullptr) log_->begin(model_);
  const auto fix = [&](int low, int high) {
    trail_.raise(model_.arc_of(low, high), 1, {Rule::kRoot, 0, -1});
  };
  for (const auto& [low, high] : model_.twins) fix(low, high);
  if (model_.upright.first >= 0) fix(model_.upright.first, model_.upright.second);
  for (int body = 0; body < model_.bodies.count(); ++body) {
    const auto* const last = model_.bodies.last(body);
    for (const auto* low = model_.bodies.first(body); low != last; ++low) {
      for (const auto* high = low + 1; high != last; ++high) {
        if (model_.arc_of(*low, *high) != Model::kNoArc) fix(*low, *high);
      }
    }
  }
}

// The loop of clause learning: lazy clause generation (Ohrimenko, Stuckey and Codish 2009), that
// is, the loop of a SAT solver whose variables are orders of pairs and bounds of offsets.
//
//     propagate --- two bounds cross, or a clause is false ---> resolve: learn a clause, go back
//         |    <----------------------------------------------- to where it has a consequence
//      fixpoint                                                 (at level 0: refuted)
//         |
//       decide the order of a pair --- none is open ---> a plan
//
// A plan: each pair is decided and no bound rises any more, so the upper item of a pair starts at
// or above the least end of the lower one. The least offsets are a plan, and all end below the
// limit.
//
// A refutation: a clause follows from the rules, the limit and the symmetries fixed at level 0. A
// conflict there depends on no decision. A lower limit has fewer plans, so that clauses stay valid
// from limit to limit, while a higher one would need a new engine.
Verdict Engine::run(Bytes limit, std::int64_t conflicts, std::int64_t steps, const Halt& halt) {
  if (refuted_ || !lower(limit)) return Verdict::kUnsat;
  const std::int64_t last_conflict = sum_or_most(conflicts_, conflicts);
  const std::int64_t last_step = sum_or_most(this->steps(), steps);
  Conflict conflict;
  for (;;) {
    if (!propagate(&conflict, std::min(last_step - this->steps(), kStepsInOneGo), halt)) {
      MEMPLAN_ASSERT(conflicts_ % kCheckEvery != 0 || check_invariants());
      ++conflicts_;
      if (!resolve(conflict)) {
        refuted_ = true;
        return Verdict::kUnsat;
      }
      continue;
    }
    if (conflicts_ >= last_conflict || this->steps() >= last_step || halt.expired()) {
      return Verdict::kBudget;
    }
    if (propagator_.is_short()) continue;
    if (options_.restarts && options_.learning && conflicts_ >= next_restart_) restart();
    if (!decide()) {
      MEMPLAN_ASSERT(is_plan());
      take_plan();
      return Verdict::kSat;
    }
  }
}

// Lowers the tops of all items to the limit. Learned clauses stay valid, since fewer plans are
// left.
bool Engine::lower(Bytes limit) {
  if (limit >= limit_) return true;
  limit_ = limit;
  backtrack(0);
  if (log_ != nullptr) log_->cap(limit);
  propagator_.narrow();
  for (int i = 0; i < model_.items; ++i) {
    const Bytes latest = model_.latest(i, limit);
    const Literal top = {2 * i + 1, -latest - model_.size[i]};
    // The trail finds bounds that cross when one rises, but these two may cross from the beginning.
    if (latest >= trail_.bound(2 * i) && trail_.raise(top.half, top.value, {Rule::kRoot, 0, -1})) {
      continue;
    }
    refuted_ = true;
    if (log_ != nullptr) {
      log_->refute_outright();
    }
    return false;
  }
  return true;
}

bool Engine::propagate(Conflict* conflict, std::int64_t most, const Halt& halt) {
  if (trail_.level() == 0) trail_.measure();
  const bool ok = propagator_.propagate(conflict, most, halt);
  if (log_ != nullptr && trail_.level() == 0) {
    analysis_.log_facts(logged_);
    logged_ = trail_.size();
  }
  return ok;
}

// Learns a clause from the conflict, goes back to the first level at which all of it but its
// first literal are false, and makes that literal hold there (backjumping, as in GRASP:
// Marques-Silva and Sakallah 1996). So the same conflict cannot come again, and the search ends.
bool Engine::resolve(const Conflict& conflict) {
  if (!options_.learning) return backtrack_once();
  if (!analysis_.learn(conflict)) return false;
  const std::vector<Literal>& clause = analysis_.clause();
  MEMPLAN_ASSERT(!clause.empty());
  backtrack(analysis_.backjump_level());
  Reason reason{Rule::kRoot, 0, -1};
  if (clause.size() > 1) {
    reason = {Rule::kClause, 0, clauses_.add(clause, analysis_.glue(), analysis_.number())};
  }
  order_.decay();
  MEMPLAN_ASSERT(!trail_.holds(clause[0]) && !trail_.holds(model_.negation(clause[0])));
  for (std::size_t k = 1; k < clause.size(); ++k) {
    MEMPLAN_ASSERT(trail_.holds(model_.negation(clause[k])));
  }
  if (!trail_.raise(clause[0].half, clause[0].value, reason)) {
    // This happens only by rounding to a legal offset.
    ++conflicts_;
    return resolve({Conflict::Kind::kCrossed, clause[0].half});
  }
  if (clauses_.learned() >= next_reduction_) {
    clauses_.reduce();
    MEMPLAN_ASSERT(check_invariants());
    next_reduction_ = clauses_.learned() + kFirstReduction + kReductionGrowth * restarts_;
  }
  return true;
}

// Without learning, this backtracks one level and reverses its decision, as a consequence of those
// before it.
bool Engine::backtrack_once() {
  if (trail_.level() == 0) return false;
  const Literal decided{trail_.decision(trail_.level()).half, 1};
  backtrack(trail_.level() - 1);
  const Literal opposite = model_.negation(decided);
  trail_.raise(opposite.half, opposite.value, {Rule::kDecision, 0, -1});
  return true;
}

void Engine::backtrack(int level) {
  trail_.backtrack(level, [&](Half h) {
    if (model_.is_item(h)) return;
    const int pair = (h >> 1) - model_.items;
    phase_[pair] = static_cast<char>((h & 1) == 0);
    order_.put_back(pair);
  });
  propagator_.forget();
}

// Restarts follow the sequence of Luby, Sinclair and Zuckerman (1993). Clauses, activities and the
// last order of each pair (phase_) stay, so that a restart mostly leads back to the same place,
// with the pairs of recent conflicts decided first.
void Engine::restart() {
  ++restarts_;
  next_restart_ = conflicts_ + kRestartUnit * luby(restarts_);
  backtrack(0);
}

bool Engine::check_invariants() const {
  MEMPLAN_ASSERT(trail_.check_invariants() && clauses_.check_invariants());
  MEMPLAN_ASSERT(order_.check_invariants() && propagator_.check_invariants());
  MEMPLAN_ASSERT(logged_ <= trail_.size());
  for (int pair = 0; pair < model_.arcs / 2; ++pair) {
    const Half even = 2 * (model_.items + pair);
    MEMPLAN_ASSERT(trail_.bound(even) > 0 || trail_.bound(even ^ 1) > 0 || order_.has(pair));
  }
  return true;
}

// Whether the least offsets are apart, end below the limit, and keep groups together.
bool Engine::is_plan() const {
  for (int u = 0; u < model_.items; ++u) {
    const Bytes at = trail_.bound(2 * u);
    MEMPLAN_ASSERT(at >= model_.floor[u] && at <= model_.latest(u, limit_));
    for (const auto* v = model_.neighbours.first(u); v != model_.neighbours.last(u); ++v) {
      const Bytes other = trail_.bound(2 * *v);
      MEMPLAN_ASSERT(at + model_.size[u] <= other || other + model_.size[*v] <= at);
    }
    const std::int32_t body = model_.body[u];
    for (const auto* v = model_.bodies.first(std::max(body, 0));
         body >= 0 && v != model_.bodies.last(body); ++v) {
      MEMPLAN_ASSERT(trail_.bound(2 * *v) - at == model_.shift(u, *v, 0));
    }
  }
  return true;
}

// Returns false when every pair is decided.
bool Engine::decide() {
  while (!order_.empty()) {
    const int pair = order_.take();
    const Half even = 2 * (model_.items + pair);
    if (trail_.bound(even) > 0 || trail_.bound(even ^ 1) > 0) continue;
    trail_.open_level();
    trail_.raise(phase_[pair] != 0 ? even : even ^ 1, 1, {Rule::kDecision, 0, -1});
    MEMPLAN_ASSERT(!trail_.crossed(even));
    steps_ += 10;
    return true;
  }
  return false;
}

void Engine::take_plan() {
  for (int i = 0; i < model_.items; ++i) {
    offsets_[model_.row_of[i]] = (trail_.bound(2 * i) - model_.lead[i]) * model_.unit;
  }
  suggest(offsets_);
}

// Pairs that were in no conflict are decided from the bottom up, item by item, and for each from
// its top neighbour down. Then bounds move once, and most orders follow by transitivity.
void Engine::suggest(const std::vector<Bytes>& offsets) {
  if (!options_.phases) return;
  std::vector<int> by_offset(model_.items), height(model_.items);
  std::iota(by_offset.begin(), by_offset.end(), 0);
  std::stable_sort(by_offset.begin(), by_offset.end(), [&](int i, int k) {
    return offsets[model_.row_of[i]] + model_.lead[i] < offsets[model_.row_of[k]] + model_.lead[k];
  });
  for (int k = 0; k < model_.items; ++k) height[by_offset[k]] = k;

  std::vector<int> ranks(model_.arcs / 2);
  int rank = 0;
  for (const int high : by_offset) {
    for (int k = height[high] - 1; k >= 0; --k) {
      const Half a = model_.arc_of(by_offset[k], high);
      if (a == Model::kNoArc) continue;
      const int pair = (a >> 1) - model_.items;
      phase_[pair] = static_cast<char>((a & 1) == 0);
      ranks[pair] = rank++;
    }
  }
  order_.rank(ranks);
}

}  // namespace memplan::prover
