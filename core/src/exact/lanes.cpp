#include "exact/lanes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "util/invariants.h"

namespace memplan::exact {

namespace {

constexpr Strategy make(SectionRule section, ValueRule value) {
  Strategy strategy;
  strategy.section = section;
  strategy.value = value;
  return strategy;
}

// Plans are found from the floor up; the last ones are for problems where that fails. The order
// comes from the challenging set, forward and reversed: with noise on the value key (8 seeds, 2 000
// nodes) the floor-first rules reach a plan 4 to 10 times as often as those that do not look at it.
constexpr Strategy kPortfolio[] = {
    make(SectionRule::kFloorOptionsPerWeight, ValueRule::kLargest),
    make(SectionRule::kFloorOptionsPerWeight, ValueRule::kShortest),
    make(SectionRule::kFloorSlackOptions, ValueRule::kLargest),
    make(SectionRule::kFloorOptionsSlack, ValueRule::kLongest),
    make(SectionRule::kFloorOptionsSlack, ValueRule::kShortest),
    make(SectionRule::kFloorOptionsPerWeight, ValueRule::kArea),
    make(SectionRule::kFloorOptionsSlack, ValueRule::kLargest),
    make(SectionRule::kOptionsPerWeight, ValueRule::kArea),
};
constexpr int kPortfolioSize = static_cast<int>(std::size(kPortfolio));

// Proofs of infeasibility want the tightest section, and no variety.
constexpr Strategy kProof = make(SectionRule::kSlackOptions, ValueRule::kArea);

constexpr double kNoise = 0.2;  // on the value key, from the second cycle of the portfolio

std::int64_t grown(std::int64_t base, double rate, int rounds) {
  const double nodes = static_cast<double>(base) * std::pow(rate, rounds);
  return nodes < 1e15 ? static_cast<std::int64_t>(nodes) : std::int64_t{1000000000000000};
}

}  // namespace

class Lanes::Lane {
 public:
  enum class Kind { kOpening, kPortfolio, kProof };

  // `begin`: the first round that the lane takes part in. `search`: null, if it is to be made when
  // it is first needed.
  Lane(Task task, const ExactOptions& options, const Kinds& kinds, Kind kind, int begin,
       std::uint64_t seed, std::unique_ptr<AnySearch> search = nullptr)
      : task_(std::move(task)),
        options_(options),
        kinds_(kinds),
        kind_(kind),
        begin_(begin),
        seed_(seed),
        search_(std::move(search)) {}

  std::int64_t slice(int round) const {
    const auto n = static_cast<std::int64_t>(task_.items.size());
    if (round < begin_ || exhausted()) return 0;
    const std::int64_t nodes = grown(100 + 3 * n, 1.15, round);
    if (kind_ == Kind::kOpening) return kOpeningNodes * nodes;
    if (kind_ == Kind::kPortfolio) return nodes;
    // Half of all nodes, but in few long runs: a proof that is cut short is begun anew.
    return round % kProofEvery == kProofEvery - 1 ? 2 * kProofEvery * nodes : 0;
  }

  void run(int round, std::int64_t budget, Stopper* stopper, const std::atomic<bool>* cancel) {
    verdict_ = Verdict::kBudget;
    if (budget <= 0) return;
    if (!search_) search_ = kinds_.search(task_, options_);
    ++restarts_;
    verdict_ = search_->run(strategy(round), budget, stopper, cancel);
  }

  Verdict verdict() const { return verdict_; }
  bool exhausted() const { return search_ && search_->exhausted(); }
  std::int64_t nodes() const { return search_ ? search_->nodes() : 0; }
  std::int64_t restarts() const { return restarts_; }

  void report(Answer& answer) const {
    answer.verdict = verdict_;
    for (std::size_t id = 0; id < task_.source.size(); ++id) {
      const ItemIdx item = task_.source[id];
      if (verdict_ == Verdict::kSat) answer.offsets[item] = search_->offsets()[id] * task_.unit;
      MEMPLAN_ASSERT(verdict_ != Verdict::kSat ||
                     task_.world->legal_above(item, answer.offsets[item]) == answer.offsets[item]);
      if (verdict_ == Verdict::kUnsat && search_->in_conflict(static_cast<int>(id))) {
        answer.conflict.push_back(item);
      }
    }
    MEMPLAN_ASSERT(verdict_ != Verdict::kUnsat || !answer.conflict.empty());
  }
  ItemIdx world_size() const { return task_.world->count(); }

 private:
  static constexpr int kProofEvery = 4;    // rounds
  static constexpr int kOpeningNodes = 4;  // as long as one node of a search

  Strategy strategy(int round) const {
    if (kind_ != Kind::kPortfolio) return kProof;
    Strategy result = kPortfolio[options_.portfolio ? round % kPortfolioSize : 0];
    const int cycle = round / kPortfolioSize;
    if (cycle > 0) result.noise = kNoise;
    result.from_right = cycle % 2 == 1;
    result.seed = seed_ * 1000003 + static_cast<std::uint64_t>(round);
    return result;
  }

  Task task_;
  ExactOptions options_;
  Kinds kinds_;
  Kind kind_;
  int begin_;
  std::uint64_t seed_;
  std::unique_ptr<AnySearch> search_;
  Verdict verdict_ = Verdict::kBudget;
  std::int64_t restarts_ = 0;
};

Lanes::Lanes(const Task& task, const ExactOptions& options, std::uint64_t seed,
             const Kinds& kinds) {
  const auto add = [&](const Task& asked, Lane::Kind kind, int begin, std::uint64_t lane_seed,
                       std::unique_ptr<AnySearch> search = nullptr) {
    lanes_.push_back(
        std::make_unique<Lane>(asked, options, kinds, kind, begin, lane_seed, std::move(search)));
  };
  if (kinds.opening != nullptr && options.tiling) {
    if (std::unique_ptr<AnySearch> opening = kinds.opening(task)) {
      // It has a round of its own before all others: often it needs no more.
      round_ = -1;
      add(task, Lane::Kind::kOpening, -1, seed, std::move(opening));
    }
  }
  add(task, Lane::Kind::kPortfolio, 0, seed);
  if (options.mirror) add(reversed(task), Lane::Kind::kPortfolio, 4, seed + 1);
  add(task, Lane::Kind::kProof, 3, seed);
}

Lanes::~Lanes() = default;

Answer Lanes::run(std::int64_t node_budget, int threads, Stopper& stopper) {
  const int count = static_cast<int>(lanes_.size());
  Answer answer;
  answer.offsets.assign(lanes_[0]->world_size(), kNoOffset);
  std::vector<std::int64_t> slices(count), nodes(count), restarts(count);
  const auto tally = [&](int last) {  // what the lanes up to this one used in a round
    for (int k = 0; k <= last; ++k) {
      answer.nodes += lanes_[k]->nodes() - nodes[k];
      answer.restarts += lanes_[k]->restarts() - restarts[k];
    }
  };
  const std::atomic<bool> never{false};
  while (node_budget > 0 && !stopper.look()) {
    // Slices are allotted before anything runs: what a lane may use cannot depend on the others.
    for (int k = 0; k < count; ++k) {
      nodes[k] = lanes_[k]->nodes();
      restarts[k] = lanes_[k]->restarts();
      slices[k] = std::min(node_budget, lanes_[k]->slice(round_));
      node_budget -= slices[k];
      MEMPLAN_ASSERT(slices[k] >= 0 && node_budget >= 0);
    }
    int winner = -1;
    // The first rounds have one lane: most problems are solved before a thread would have begun.
    const auto idle = std::count(slices.begin(), slices.end(), 0);
    if (threads <= 1 || idle >= count - 1) {
      for (int k = 0; k < count && winner < 0; ++k) {
        lanes_[k]->run(round_, slices[k], &stopper, &never);
        if (lanes_[k]->verdict() != Verdict::kBudget) winner = k;
      }
    } else {
      winner = run_round(slices, threads, stopper);
    }
    ++round_;
    tally(winner >= 0 ? winner : count - 1);
    for (int k = 0; k < winner; ++k) MEMPLAN_ASSERT(lanes_[k]->verdict() == Verdict::kBudget);
    if (winner >= 0) {
      lanes_[winner]->report(answer);
      return answer;
    }
    // What a lane at its end has left over is for the others.
    for (int k = 0; k < count; ++k) {
      const std::int64_t left = slices[k] - (lanes_[k]->nodes() - nodes[k]);
      if (lanes_[k]->exhausted()) node_budget += std::max<std::int64_t>(0, left);
    }
  }
  return answer;
}

// Workers take lanes in order. The calling thread does not search: it alone may ask the stopper
// (the caller's interrupt belongs to its thread), and it cancels lanes that can no longer win.
int Lanes::run_round(const std::vector<std::int64_t>& slices, int threads, Stopper& stopper) {
  const int count = static_cast<int>(lanes_.size());
  std::vector<std::atomic<bool>> cancelled(count);
  for (std::atomic<bool>& c : cancelled) c = false;
  std::mutex mutex;
  std::condition_variable changed;
  int next = 0, open = count;
  const auto work = [&] {
    while (true) {
      int k = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (next == count) return;
        k = next++;
      }
      lanes_[k]->run(round_, cancelled[k] ? 0 : slices[k], nullptr, &cancelled[k]);
      const std::lock_guard<std::mutex> lock(mutex);
      if (lanes_[k]->verdict() != Verdict::kBudget) {
        for (int later = k + 1; later < count; ++later) cancelled[later] = true;
      }
      --open;
      changed.notify_one();
    }
  };
  std::vector<std::thread> workers;
  for (int t = 0; t < std::min(threads, count); ++t) workers.emplace_back(work);
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (open > 0) {
      changed.wait_for(lock, std::chrono::milliseconds(5));
      if (stopper.look()) {
        for (std::atomic<bool>& c : cancelled) c = true;
      }
    }
  }
  for (std::thread& worker : workers) worker.join();
  for (int k = 0; k < count; ++k) {
    if (lanes_[k]->verdict() != Verdict::kBudget) return k;
  }
  return -1;
}

}  // namespace memplan::exact
