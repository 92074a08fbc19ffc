// Tests of plans in which sharing costs: cost and peak of small problems against all plans.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "apart/cover.h"
#include "apart/model.h"
#include "apart/prices.h"
#include "apart/rows.h"
#include "apart/ruin.h"
#include "apart/slots.h"
#include "check.h"
#include "memplan/apart.h"
#include "memplan/solve.h"
#include "oracle.h"

using namespace memplan;

namespace {

constexpr std::int64_t kNoPlan = -1;

struct Best {
  std::int64_t cost = kNoPlan;
  Bytes peak = 0;
};

// The least cost, and then the least peak, over all plans.
class AllPlans {
 public:
  AllPlans(const Problem& problem, const std::vector<Penalty>& penalties)
      : problem_(problem), at_(problem.size.size(), 0) {
    cost_.assign(at_.size() * at_.size(), 0);
    for (const Penalty& each : penalties) {
      cost_[each.first * at_.size() + each.second] = each.cost;
      cost_[each.second * at_.size() + each.first] = each.cost;
    }
    place(0, 0, 0);
  }

  Best best() const { return best_; }

 private:
  void place(BufferIdx b, std::int64_t cost, Bytes peak) {
    if (best_.cost != kNoPlan &&
        std::make_pair(cost, peak) >= std::make_pair(best_.cost, best_.peak))
      return;
    if (b == problem_.count()) {
      best_ = {cost, peak};
      return;
    }
    for (at_[b] = 0; at_[b] + problem_.size[b] <= *problem_.capacity; ++at_[b]) {
      if (!oracle::legal(problem_, b, at_[b])) continue;
      std::int64_t more = 0;
      bool is_legal = true;
      for (BufferIdx a = 0; a < b && is_legal; ++a) {
        is_legal = !oracle::conflict(problem_, a, at_[a], b, at_[b]) &&
                   oracle::in_step(problem_, a, at_[a], b, at_[b]);
        const bool do_meet = problem_.size[a] > 0 && problem_.size[b] > 0 &&
                             at_[a] < at_[b] + problem_.size[b] &&
                             at_[b] < at_[a] + problem_.size[a];
        if (do_meet) more += cost_[a * at_.size() + b];
      }
      if (is_legal) place(b + 1, cost + more, std::max(peak, at_[b] + problem_.size[b]));
    }
  }

  const Problem& problem_;
  std::vector<std::int64_t> cost_;
  std::vector<Bytes> at_;
  Best best_;
};

struct Question {
  Problem problem;
  std::vector<Penalty> penalties;
};

// Whether two buffers hold something at one moment.
bool live_together(const Problem& problem, BufferIdx a, BufferIdx b) {
  for (const oracle::Piece& p : oracle::pieces(problem, a)) {
    for (const oracle::Piece& q : oracle::pieces(problem, b)) {
      const bool is_common = std::max(p.start, q.start) < std::min(p.end, q.end);
      if (is_common && p.lower < p.upper && q.lower < q.upper) return true;
    }
  }
  return false;
}

// Many short lifetimes, so that most pairs may share. Every eighth has equal sizes, every fourth
// other constraints.
Question question(unsigned seed) {
  oracle::Generator random(seed);
  oracle::Features with;
  const bool is_rich = seed % 4 == 3;
  if (is_rich) {
    with.alignment = random.pick(0, 1) == 0;
    with.pins = random.pick(0, 2) == 0;
    with.reserved = random.pick(0, 2) == 0;
    with.gaps = random.pick(0, 2) == 0;
  }
  Question made;
  Problem& p = made.problem;
  p = random.problem(random.pick(2, is_rich ? 5 : 6), 6, 4, with);
  for (BufferIdx b = 0; b < p.count() && p.gaps.empty(); ++b) {
    p.end[b] = p.start[b] + random.pick(1, 2);
    if (seed % 8 == 1) p.size[b] = 2;
  }
  if (is_rich && random.pick(0, 2) == 0) random.relate(&p, 6);
  if (is_rich && random.pick(0, 3) == 0) random.gather(&p);
  if (seed % 8 == 2) p.reserved = {{random.pick(0, 2), 3}};
  Bytes sum = 0;
  for (const Bytes size : p.size) sum += size;
  p.capacity = random.pick(std::max<Bytes>(1, std::min<Bytes>(4, sum)), std::max<Bytes>(4, sum));
  for (BufferIdx a = 0; a < p.count(); ++a) {
    for (BufferIdx b = a + 1; b < p.count(); ++b) {
      if (random.pick(0, 4) == 0 || live_together(p, a, b)) continue;
      made.penalties.push_back({a, b, random.pick(0, 9) == 0 ? 0 : random.pick(1, 5)});
    }
  }
  return made;
}

// How much of a row some pairs give that meet.
std::int64_t has_of(const apart::Row& row, const apart::Chosen& met) {
  std::int64_t has = 0;
  for (const apart::Term& term : row.terms) {
    if (std::binary_search(met.begin(), met.end(), term.pair)) has += term.amount;
  }
  return has;
}

}  // namespace

TEST(small_problems_against_all_plans) {
  int infeasible = 0;
  int paid = 0;
  for (unsigned seed = 0; seed < check::rounds(600, 20000); ++seed) {
    const Question asked = question(seed);
    if (!memplan::check(asked.problem).empty()) continue;
    CHECK_EQ(memplan::check(asked.problem, asked.penalties), std::string());
    const Best best = AllPlans(asked.problem, asked.penalties).best();
    const ApartResult found = plan_apart(asked.problem, asked.penalties);
    if (best.cost == kNoPlan) {
      CHECK_EQ(name(found.status), std::string("infeasible"));
      ++infeasible;
      continue;
    }
    CHECK_EQ(name(found.status), std::string("optimal"));
    CHECK(oracle::valid(asked.problem, found.offsets));
    CHECK_EQ(cost_of(asked.problem, asked.penalties, found.offsets), found.cost);
    CHECK_EQ(found.cost, best.cost);
    CHECK_EQ(found.bound, best.cost);
    CHECK_EQ(oracle::peak(asked.problem, found.offsets), found.peak);
    CHECK_EQ(found.peak, best.peak);
    CHECK_EQ(found.peak_bound, best.peak);
    paid += best.cost > 0 ? 1 : 0;
  }
  CHECK(infeasible > 5 && paid > 100);
}

TEST(slots_and_prices_against_all_plans) {
  std::mt19937 random(7);
  int sharper = 0;
  int slotted = 0;
  int bounded = 0;
  for (unsigned seed = 0; seed < check::rounds(400, 20000); ++seed) {
    const Question asked = question(seed);
    if (!memplan::check(asked.problem).empty()) continue;
    const Best best = AllPlans(asked.problem, asked.penalties).best();
    apart::Model model = apart::make_model(asked.problem, asked.penalties);
    const std::int64_t limit = model.total + 1;
    Stopper stopper(1e9);
    Counter counter(1000000, stopper);
    const auto slots = apart::fill_slots(model, limit, counter);
    if (slots) {
      ++slotted;
      if (best.cost == kNoPlan) {
        CHECK(slots->offsets.empty());
        CHECK_EQ(slots->bound, limit);
      } else if (!slots->offsets.empty()) {
        CHECK(oracle::valid(asked.problem, slots->offsets));
        CHECK_EQ(cost_of(asked.problem, asked.penalties, slots->offsets), best.cost);
        CHECK_EQ(slots->bound * model.unit + model.fixed, best.cost);
      } else {
        CHECK(model.pairs.empty());
      }
    }
    if (best.cost == kNoPlan) continue;
    const std::int64_t bound = apart::bound_by_prices(model, model.total, seed, counter);
    CHECK(bound * model.unit + model.fixed <= best.cost);
    bounded += bound > 0 ? 1 : 0;
    // Every row holds in a cheapest plan, and so does its rounding that some z violates most.
    const ApartResult found = plan_apart(asked.problem, asked.penalties);
    const apart::Chosen met = apart::met_pairs(model, found.offsets);
    for (const apart::Clique& clique : apart::find_cliques(model, {}, counter)) {
      const apart::Row row = apart::load_row(model, clique);
      CHECK(has_of(row, met) >= row.need);
      std::vector<double> some;
      for (std::size_t k = 0; k < model.pairs.size(); ++k) {
        some.push_back(static_cast<double>(random() % 5) / 8);
      }
      std::int64_t work = 0;
      const apart::Row sharp = apart::sharpest(row, some, &work);
      CHECK(has_of(sharp, met) >= sharp.need);
      sharper += sharp.need != row.need ? 1 : 0;
    }
  }
  CHECK(slotted > 50 && bounded > 50 && sharper > 0);
}

TEST(covers_against_all_subsets) {
  oracle::Generator random(5);
  for (unsigned round = 0; round < check::rounds(300, 20000); ++round) {
    apart::Model model;
    const auto pairs = static_cast<apart::PairIdx>(random.pick(1, 8));
    for (apart::PairIdx k = 0; k < pairs; ++k) {
      model.pairs.push_back({0, 1, random.pick(1, 6)});
      model.total += model.pairs.back().cost;
    }
    std::vector<apart::Row> rows(static_cast<std::size_t>(random.pick(0, 5)));
    for (apart::Row& row : rows) {
      row.need = random.pick(1, 6);
      for (apart::PairIdx k = 0; k < pairs; ++k) {
        if (random.pick(0, 1) == 0) row.terms.push_back({k, random.pick(1, row.need)});
      }
    }
    std::int64_t least = random.pick(1, model.total + 1);
    const std::int64_t limit = least;
    for (unsigned set = 0; set < (1U << pairs); ++set) {
      std::int64_t cost = 0;
      for (apart::PairIdx k = 0; k < pairs; ++k) {
        cost += ((set >> k) & 1) != 0 ? model.pairs[k].cost : 0;
      }
      const bool is_cover = std::all_of(rows.begin(), rows.end(), [set](const apart::Row& row) {
        std::int64_t has = 0;
        for (const apart::Term& term : row.terms)
          has += ((set >> term.pair) & 1) != 0 ? term.amount : 0;
        return has >= row.need;
      });
      if (is_cover) least = std::min(least, cost);
    }
    Stopper stopper(1e9);
    Counter counter(1000000, stopper);
    const apart::Cover cover = apart::cheapest_cover(model, rows, limit, counter);
    CHECK_EQ(cover.bound, least);
    CHECK_EQ(cover.is_found, least < limit);
    if (cover.is_found) CHECK_EQ(apart::cost_of(model, cover.pairs), least);
    Counter one(1, stopper);  // cut short, it has a bound all the same
    CHECK(apart::cheapest_cover(model, rows, limit, one).bound <= least);
  }
}

TEST(ruin_keeps_plans_legal_and_no_dearer) {
  int cheaper = 0;
  for (unsigned seed = 0; seed < check::rounds(200, 20000); ++seed) {
    const Question asked = question(seed);
    if (!memplan::check(asked.problem).empty()) continue;
    SolveOptions options;
    options.objective = Objective::kFit;
    const Plan plan = solve(asked.problem, options);
    if (!plan.has_offsets()) continue;
    const apart::Model model = apart::make_model(asked.problem, asked.penalties);
    Stopper stopper(1e9);
    Counter counter(400, stopper);
    const std::vector<Bytes> offsets = apart::ruin_and_recreate(model, plan.offsets, seed, counter);
    CHECK(oracle::valid(asked.problem, offsets));
    const std::int64_t before = cost_of(asked.problem, asked.penalties, plan.offsets);
    const std::int64_t after = cost_of(asked.problem, asked.penalties, offsets);
    CHECK(after <= before);
    cheaper += after < before ? 1 : 0;
  }
  CHECK(cheaper > 20);
}

TEST(a_budget_of_nodes_gives_bounds_and_the_same_plan) {
  for (unsigned seed = 0; seed < check::rounds(60, 2000); ++seed) {
    const Question asked = question(seed);
    if (!memplan::check(asked.problem).empty()) continue;
    const Best best = AllPlans(asked.problem, asked.penalties).best();
    ApartOptions options;
    options.budget.nodes = 1 + static_cast<std::int64_t>(seed % 50);
    const ApartResult found = plan_apart(asked.problem, asked.penalties, options);
    const ApartResult again = plan_apart(asked.problem, asked.penalties, options);
    CHECK(found.offsets == again.offsets);
    if (found.status == Status::kInfeasible) CHECK_EQ(best.cost, kNoPlan);
    if (!has_plan(found.status)) continue;
    CHECK(found.bound <= best.cost && best.cost <= found.cost);
    CHECK(found.status != Status::kOptimal || found.cost == best.cost);
    CHECK(found.cost > best.cost || found.peak_bound <= best.peak);
  }
}

TEST(wrong_penalties_are_refused) {
  Problem problem;
  problem.start = {0, 1, 4};
  problem.end = {2, 3, 5};
  problem.size = {1, 1, 1};
  const auto says = [&problem](std::vector<Penalty> penalties) {
    return memplan::check(problem, penalties);
  };
  CHECK_EQ(says({{0, 2, 1}, {1, 2, 0}}), std::string());
  CHECK_EQ(says({{0, 3, 1}}), std::string("penalty 0: there is no buffer 3"));
  CHECK_EQ(says({{2, 2, 1}}), std::string("penalty 0: it is of one buffer, 2 and 2"));
  CHECK_EQ(says({{0, 2, -1}}), std::string("penalty 0: a cost must be 0 or more"));
  CHECK_EQ(says({{1, 0, 1}}),
           std::string("penalty 0: buffers 1 and 0 hold memory at the same time"));
  CHECK_EQ(says({{0, 2, 1}, {2, 0, 1}}), std::string("buffers 0 and 2 have two penalties"));
  CHECK_EQ(says({{0, 2, std::int64_t{1} << 53}}),
           std::string("penalty 0: the sum of all costs must be below 2^53"));
}

TEST_MAIN
