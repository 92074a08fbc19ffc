#include "memplan/order.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/counter.h"
#include "order/attempt.h"
#include "order/beam.h"
#include "order/cuts.h"
#include "order/delays.h"
#include "order/exact.h"
#include "order/narrow.h"
#include "order/segments.h"
#include "order/state.h"
#include "order/tidy.h"
#include "order/windows.h"
#include "util/failure.h"

namespace memplan {

namespace order {

namespace {

constexpr std::size_t kMaxBytesOfStates = std::size_t{1} << 29;
constexpr int kMaxLimits = 6;
constexpr std::int64_t kFirstCuts = 1024;  // beams may lower the steps of others below the bound
constexpr std::int64_t kStatesPerFlow = 16;

// The answer to one part: an order of it, and a bound on every order of it.
struct Answer {
  std::vector<OperatorIdx> order;
  Bytes peak = 0;
  Bytes bound = 0;
};

Bytes peak_of(const Program& program, const std::vector<OperatorIdx>& order) {
  Bytes peak = std::max(live_before(program), live_after(program));
  for (const Bytes step : steps_of(program, order)) peak = std::max(peak, step);
  return peak;
}

// The places of an order, from the largest step on.
std::vector<std::size_t> by_size(const std::vector<Bytes>& steps) {
  std::vector<std::size_t> places(steps.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a] > steps[b]; });
  return places;
}

// Solves one part.
class PartSearch {
 public:
  PartSearch(const Program& program, Answer& answer, const OrderRules& rules, Counter& counter)
      : program_(program),
        forwards_(program),
        backwards_(turned(program)),
        answer_(answer),
        rules_(rules),
        counter_(counter) {}

  bool is_open() { return answer_.bound < answer_.peak && !counter_.is_spent(); }

  void search_beams(std::initializer_list<int> widths) {
    if (!rules_.beams) return;
    for (const int width : widths) {
      for (const BeamKey key : {BeamKey::kPeakFirst, BeamKey::kLiveFirst}) {
        for (const bool turn : {false, true}) {
          if (turn && !rules_.backwards) continue;
          if (!is_open()) return;
          const BeamOptions options{width, key, moves(turn)};
          take(search_beam(turn ? backwards_ : forwards_, answer_.bound, answer_.peak, options,
                           counter_),
               turn);
        }
      }
    }
  }

  // Goes on in both directions for so many states each.
  void search_exactly(std::int64_t states) {
    if (!forward_search_) {
      forward_search_.emplace(forwards_, answer_.bound, moves(false), rules_.cuts);
      backward_search_.emplace(backwards_, answer_.bound, moves(true), rules_.cuts);
    }
    for (const bool turn : {false, true}) {
      if (turn && !rules_.backwards) continue;
      if (!is_open() || is_full()) return;
      Exact& search = turn ? *backward_search_ : *forward_search_;
      search.raise(answer_.bound);
      const Exact::End end = search.run(answer_.peak, states, counter_);
      answer_.bound = std::max(answer_.bound, std::min(search.limit(), answer_.peak));
      if (end == Exact::End::kFound) take(search.found(), turn);
    }
  }

  // Going back towards the given order may end below the peak that it has to keep.
  void search_near_given() {
    if (is_open()) take(tidy(program_, answer_.order, answer_.peak), false);
  }

  void search_windows(std::size_t width, std::int64_t states) {
    if (!rules_.windows || !is_open() || width > answer_.order.size()) return;
    std::vector<OperatorIdx> order = answer_.order;
    improve_windows(program_, order, answer_.bound, {width, states, moves()}, counter_);
    take(std::move(order), false);
  }

  // Raises the bound to the highest limit that is refuted, and goes on with the orders below the
  // best peak alone.
  void narrow(std::int64_t flows) {
    if (!rules_.narrowing || !is_open()) return;
    std::vector<OperatorIdx> operators;
    for (const std::size_t place : by_size(steps_of(program_, answer_.order))) {
      operators.push_back(answer_.order[place]);
    }
    Bytes low = answer_.bound;  // the limits between which the answer is not known
    Bytes high = answer_.peak - 1;
    for (int tries = 0; tries < kMaxLimits && low < high; ++tries) {
      const Bytes limit = low + (high - low) / 2;
      Narrowing narrowing(forwards_, limit);
      const Narrowing::End end = narrowing.run(operators, flows, counter_);
      if (end == Narrowing::End::kSpent) return;
      const bool is_refuted = end == Narrowing::End::kRefuted;
      low = std::max(low, is_refuted ? limit + 1 : narrowing.bound());
      if (!is_refuted) high = limit;
      answer_.bound = std::max(answer_.bound, low);
    }
    Narrowing narrowing(forwards_, answer_.peak - 1);
    const Narrowing::End end = narrowing.run(operators, flows, counter_);
    if (end == Narrowing::End::kRefuted) answer_.bound = answer_.peak;
    if (end != Narrowing::End::kNarrowed || !narrowing.has_arcs()) return;
    forwards_ = narrowing.program();
    backwards_ = turned(forwards_);
    forward_delays_.reset();
    backward_delays_.reset();
    forward_search_.reset();
    backward_search_.reset();
  }

  // Whether the exact search has no memory left.
  bool is_full() const {
    return forward_search_ &&
           forward_search_->bytes() + backward_search_->bytes() > kMaxBytesOfStates;
  }

 private:
  Moves moves() const { return {rules_.commits, rules_.valleys}; }

  Moves moves(bool turn) {
    Moves found = moves();
    if (!rules_.delays) return found;
    if (!forward_delays_) {
      forward_delays_.emplace(forwards_);
      backward_delays_.emplace(backwards_);
    }
    found.delays = turn ? &*backward_delays_ : &*forward_delays_;
    return found;
  }

  void take(std::optional<std::vector<OperatorIdx>> order, bool turn) {
    if (!order) return;
    if (turn) std::reverse(order->begin(), order->end());
    const Bytes peak = peak_of(program_, *order);
    if (peak >= answer_.peak) return;
    answer_.order = std::move(*order);
    answer_.peak = peak;
  }

  const Program& program_;
  Program forwards_;  // narrowed to the orders that may be better than the best one
  Program backwards_;
  Answer& answer_;
  const OrderRules& rules_;
  Counter& counter_;
  std::optional<Delays> forward_delays_;
  std::optional<Delays> backward_delays_;
  std::optional<Exact> forward_search_;
  std::optional<Exact> backward_search_;
};

class OrderSearch {
 public:
  OrderSearch(const OrderProblem& problem, const OrderOptions& options)
      : program_(make_program(problem)),
        rules_(options.rules),
        stopper_(options.budget.seconds, options.interrupt),
        counter_(options.budget.nodes, stopper_) {
    result_.order.resize(problem.workspace.size());
    std::iota(result_.order.begin(), result_.order.end(), 0);
    given_ = result_.order;
  }

  OrderResult solve() {
    begin();
    bound_by_cuts(kFirstCuts);
    if (is_open()) search_parts();
    if (result_.peak < peak_of(program_, given_)) {
      if (rules_.tidying) result_.order = tidy(program_, std::move(result_.order), result_.peak);
      result_.peak = peak_of(program_, result_.order);
    } else {
      result_.order = given_;
    }
    explain_largest();
    result_.status = result_.bound == result_.peak ? Status::kOptimal : Status::kFeasible;
    result_.states = counter_.used();
    result_.interrupted = stopper_.interrupted();
    return std::move(result_);
  }

 private:
  bool is_open() { return result_.bound < result_.peak && !counter_.is_spent(); }

  void begin() {
    result_.peak = peak_of(program_, result_.order);
    result_.bound = std::max(live_before(program_), live_after(program_));
    for (OperatorIdx op = 0; op < program_.operators(); ++op) {
      const Bytes own = program_.base + own_bytes(program_, op);
      if (own <= result_.bound) continue;
      result_.bound = own;
      largest_ = op;
    }
    own_bound_ = result_.bound;
  }

  // If no cut is above what one operator needs by itself, its own cut is the certificate.
  void explain_largest() {
    if (!rules_.cuts || largest_ < 0 || result_.bound != own_bound_) return;
    result_.certificate = least_step(program_, largest_).certificate;
  }

  // Bounds the operators whose steps are above the bound, from the largest step on.
  void bound_by_cuts(std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    if (!rules_.cuts) return;
    const std::vector<Bytes> steps = steps_of(program_, result_.order);
    cut_.resize(steps.size(), 0);
    for (const std::size_t place : by_size(steps)) {
      if (steps[place] <= result_.bound || stopper_.look()) return;
      const OperatorIdx op = result_.order[place];
      if (cut_[op] != 0) continue;
      if (most-- == 0) return;
      cut_[op] = 1;
      Cut cut = least_step(program_, op);
      if (cut.bound <= result_.bound) continue;
      result_.bound = cut.bound;
      result_.certificate = std::move(cut.certificate);
    }
  }

  // Segments: an operator that is comparable to all others has the same place in every order. What
  // lies between two of them is a part of its own: the peak of an order is the greatest of its
  // parts, and a bound on one part is a bound on the whole. So parts below the bound need no
  // search, and the part with the highest peak comes first.
  //
  // Each round has four times the states of the one before: the exact search in both directions,
  // narrowing, and windows around the peak of the best order. Wide beams come when a round costs as
  // much. The loop ends when the best order meets the bound, the budget is spent, or no search has
  // memory left.
  void search_parts() {
    std::vector<std::size_t> begins{0, result_.order.size()};
    if (rules_.segments) begins = segments(program_);
    std::vector<Part> parts;
    std::vector<Answer> answers;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      Part part = make_part(program_, given_, begins[i], begins[i + 1]);
      Answer answer;
      answer.order.resize(part.operators.size());
      std::iota(answer.order.begin(), answer.order.end(), 0);
      answer.peak = peak_of(part.program, answer.order);
      if (part.operators.size() == 1) result_.bound = std::max(result_.bound, answer.peak);
      answer.bound = result_.bound;
      if (answer.peak <= result_.bound) continue;
      parts.push_back(std::move(part));
      answers.push_back(std::move(answer));
    }
    std::deque<PartSearch> searches;  // which stay where they are
    for (std::size_t i = 0; i < parts.size(); ++i) {
      searches.emplace_back(parts[i].program, answers[i], rules_, counter_);
    }
    std::vector<std::size_t> by_peak(parts.size());
    std::iota(by_peak.begin(), by_peak.end(), std::size_t{0});
    const auto each_part = [&](const auto& search) {
      if (!is_open()) return;
      std::stable_sort(by_peak.begin(), by_peak.end(), [&](std::size_t a, std::size_t b) {
        return answers[a].peak > answers[b].peak;
      });
      for (const std::size_t i : by_peak) {
        answers[i].bound = std::max(answers[i].bound, result_.bound);
        if (searches[i].is_open()) search(searches[i]);
        // What one part needs at least, the whole needs.
        if (answers[i].bound <= answers[i].peak && answers[i].bound > result_.bound) {
          result_.bound = answers[i].bound;
          result_.certificate = {};
        }
        put(parts[i], answers[i]);
      }
      result_.peak = peak_of(program_, result_.order);
      bound_by_cuts();
    };
    each_part([](PartSearch& part) {
      part.search_beams({1, 4});
      part.search_near_given();
    });
    // A wide beam comes when it costs no more than the exact search has had without success.
    std::vector<int> beams{256, 64, 16};
    const auto is_over = [](PartSearch& part) { return !part.is_open() || part.is_full(); };
    std::size_t width = 32;
    for (std::int64_t states = 1000; is_open(); states *= 4) {
      each_part([&](PartSearch& part) { part.search_exactly(states); });
      if (states / kStatesPerFlow >= program_.operators()) {
        each_part([&](PartSearch& part) { part.narrow(states / kStatesPerFlow); });
      }
      each_part([&](PartSearch& part) {
        part.search_windows(width, states / 4);
        part.search_near_given();
      });
      if (!beams.empty() && 4 * beams.back() * program_.operators() <= states) {
        each_part([&](PartSearch& part) { part.search_beams({beams.back()}); });
        beams.pop_back();
      }
      if (std::all_of(searches.begin(), searches.end(), is_over)) return;
      width *= 2;
    }
  }

  // Writes the order of a part to its places.
  void put(const Part& part, const Answer& answer) {
    const auto first = static_cast<std::size_t>(part.operators.front());
    for (std::size_t i = 0; i < answer.order.size(); ++i) {
      result_.order[first + i] = part.operators[answer.order[i]];
    }
  }

  Program program_;
  OrderRules rules_;
  Stopper stopper_;
  Counter counter_;
  std::vector<OperatorIdx> given_;
  OperatorIdx largest_ = -1;  // the operator that needs most by itself
  Bytes own_bound_ = 0;
  std::vector<std::uint8_t> cut_;  // by operator: whether its cut is known
  OrderResult result_;
};

}  // namespace

}  // namespace order

Bytes peak_of_order(const OrderProblem& problem, const std::vector<OperatorIdx>& order) {
  std::vector<std::size_t> place(problem.workspace.size(), order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    if (order[at] >= 0 && order[at] < problem.operators()) place[order[at]] = at;
  }
  const bool is_whole =
      order.size() == place.size() &&
      std::all_of(place.begin(), place.end(), [&](std::size_t at) { return at < order.size(); });
  const bool is_legal =
      is_whole && std::all_of(problem.arcs.begin(), problem.arcs.end(),
                              [&](const Arc& arc) { return place[arc.from] < place[arc.to]; });
  if (!is_legal) {
    fail("an order must have every operator once, and each after those that it waits for");
  }
  return order::peak_of(order::make_program(problem), order);
}

std::string try_best_order(const OrderProblem& problem, const OrderOptions& options,
                           OrderResult* result) {
  std::string fault = check(problem);
  if (fault.empty()) *result = order::OrderSearch(problem, options).solve();
  return fault;
}

OrderResult best_order(const OrderProblem& problem, const OrderOptions& options) {
  OrderResult result;
  const std::string fault = try_best_order(problem, options, &result);
  if (!fault.empty()) fail(fault);
  return result;
}

}  // namespace memplan
