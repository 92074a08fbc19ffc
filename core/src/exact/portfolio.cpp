#include "exact/portfolio.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "util/failure.h"
#include "util/invariants.h"
#include "util/random.h"

namespace memplan::exact {

namespace {

// Short dives by rules that complement each other reach more plans than long ones by the best rule.
// Where one direction of time has no plan within reach, the other one often has. The order is a
// greedy cover of problems of many families, chosen by lab/tests/choose_rules.py.
constexpr Rules kForward[] = {
    {SectionRule::kFloorOptionsPerWeight, ValueRule::kLongest},
    {SectionRule::kFloorOptionsSlack, ValueRule::kArea},
    {SectionRule::kFloorOptionsSlack, ValueRule::kLargest},
    {SectionRule::kOptionsSlack, ValueRule::kLargest},
    {SectionRule::kFloorOptionsSlack, ValueRule::kLongest},
    {SectionRule::kFloorOptionsSlack, ValueRule::kShortest},
    {SectionRule::kFloorOptionsPerWeight, ValueRule::kArea},
    {SectionRule::kFloorSlackOptions, ValueRule::kLongest},
    {SectionRule::kOptionsPerWeight, ValueRule::kLargest},
    {SectionRule::kSlackOptions, ValueRule::kLongest},
    {SectionRule::kOptionsFloor, ValueRule::kArea},
    {SectionRule::kFloorSlackOptions, ValueRule::kArea},
    {SectionRule::kOptionsSlack, ValueRule::kShortest},
    {SectionRule::kOptionsSlack, ValueRule::kLongest},
};
constexpr Rules kMirrored[] = {
    {SectionRule::kFloorOptionsSlack, ValueRule::kLongest},
    {SectionRule::kFloorSlackOptions, ValueRule::kLongest},
    {SectionRule::kFloorOptionsPerWeight, ValueRule::kArea},
    {SectionRule::kFloorOptionsSlack, ValueRule::kLargest},
    {SectionRule::kFloorOptionsSlack, ValueRule::kArea},
    {SectionRule::kFloorOptionsPerWeight, ValueRule::kLongest},
    {SectionRule::kOptionsPerWeight, ValueRule::kLargest},
    {SectionRule::kOptionsPerWeight, ValueRule::kLongest},
    {SectionRule::kFloorOptionsPerWeight, ValueRule::kShortest},
    {SectionRule::kOptionsFloor, ValueRule::kArea},
    {SectionRule::kOptionsSlack, ValueRule::kLongest},
    {SectionRule::kFloorOptionsSlack, ValueRule::kShortest},
    {SectionRule::kOptionsPerWeight, ValueRule::kArea},
    {SectionRule::kOptionsFloor, ValueRule::kLongest},
};
constexpr int kRules = static_cast<int>(std::size(kForward));
static_assert(std::size(kMirrored) == std::size(kForward));

// No list has the right rules for every problem, so samples of all rules follow the dives from the
// second cycle on. A node of the rules that do not begin with the floor takes about three times as
// long, so they are drawn less often.
constexpr SectionRule kSections[] = {
    SectionRule::kFloorOptionsSlack,     SectionRule::kFloorOptionsSlack,
    SectionRule::kFloorOptionsSlack,     SectionRule::kFloorOptionsSlack,
    SectionRule::kFloorSlackOptions,     SectionRule::kFloorSlackOptions,
    SectionRule::kFloorSlackOptions,     SectionRule::kFloorSlackOptions,
    SectionRule::kFloorOptionsPerWeight, SectionRule::kFloorOptionsPerWeight,
    SectionRule::kFloorOptionsPerWeight, SectionRule::kFloorOptionsPerWeight,
    SectionRule::kOptionsSlack,          SectionRule::kSlackOptions,
    SectionRule::kOptionsFloor,          SectionRule::kOptionsPerWeight,
};
constexpr ValueRule kValues[] = {
    ValueRule::kArea,
    ValueRule::kLongest,
    ValueRule::kLargest,
    ValueRule::kShortest,
};

// Proofs of infeasibility need the tightest section first; variety does not help them.
constexpr Rules kProof = {SectionRule::kSlackOptions, ValueRule::kArea};

// On the value key: from the second cycle of the portfolio, and of samples.
constexpr double kNoise = 0.1;
constexpr double kSampleNoise = 0.2;

std::int64_t grown(std::int64_t base, double rate, int rounds) {
  const double nodes = static_cast<double>(base) * std::pow(rate, rounds);
  return nodes < 1e15 ? static_cast<std::int64_t>(nodes) : std::int64_t{1000000000000000};
}

}  // namespace

class Portfolio::Worker {
 public:
  enum class Role { kTiling, kDives, kProof };

  // `rules` are kRules for dives, and otherwise one. A null `search` is made when it is first
  // needed, since most problems are solved before all workers have had a turn.
  Worker(Task task, const ExactOptions& options, const SearchMakers& makers, Role role,
         const Rules* rules, std::uint64_t seed, std::unique_ptr<AnySearch> search = nullptr)
      : task_(std::move(task)),
        options_(options),
        makers_(makers),
        role_(role),
        rules_(rules),
        seed_(seed),
        search_(std::move(search)) {}

  std::int64_t slice(int round) const {
    if (exhausted() || (round < 0 && role_ != Role::kTiling)) return 0;
    const std::int64_t nodes = one_run(round);
    if (role_ == Role::kTiling) return kTilingNodes * nodes;
    if (role_ == Role::kDives) return samples(round) ? (1 + kSamples) * nodes : nodes;
    // As many nodes as the dives have without samples, but in few long runs: a proof that is cut
    // short starts again.
    return round % kProofEvery == kFirstProof ? 2 * kProofEvery * nodes : 0;
  }

  // Whether so many nodes are too few for the dive of this round.
  bool cuts_short(int round, std::int64_t nodes) const {
    return role_ == Role::kDives && round >= 0 && nodes < one_run(round);
  }

  // One run of the search; after a dive, from the second cycle on, also samples: short runs by
  // rules drawn at random, as many as the budget allows. Runs have heavy tails (Gomes, Selman and
  // Kautz 1998): most plans are found within few nodes or not at all, so that many short runs find
  // more than a long one. Nogoods stay from run to run.
  void run(int round, std::int64_t budget, Stopper* stopper, const std::atomic<bool>* cancel) {
    verdict_ = Verdict::kBudget;
    if (budget <= 0) return;
    if (!search_) search_ = makers_.search(task_, options_);
    const bool sampled = samples(round);
    Strategy next = strategy(round);
    std::int64_t nodes = sampled ? std::min(budget, one_run(round)) : budget;
    while (nodes > 0) {
      const std::int64_t before = search_->nodes();
      ++restarts_;
      verdict_ = search_->run(next, nodes, stopper, cancel);
      next = sample();
      const std::int64_t used = search_->nodes() - before;
      // A search that was stopped opens no node.
      if (!sampled || verdict_ != Verdict::kBudget || used <= 0) return;
      budget -= used;
      nodes = std::min(2 * one_run(0), budget);
    }
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
  static constexpr int kProofEvery = 8;   // rounds
  static constexpr int kFirstProof = 3;   // round: a small problem that is infeasible needs no more
  static constexpr int kTilingNodes = 4;  // take as long as one node of the search
  static constexpr int kSamples = 3;      // nodes, for one of the dive before them

  // The nodes of a dive, in which other slices are counted.
  std::int64_t one_run(int round) const {
    return grown(first_dive(static_cast<ItemIdx>(task_.items.size())), 1.1, round);
  }

  bool samples(int round) const {
    return role_ == Role::kDives && options_.portfolio && round >= kRules;
  }

  Strategy sample() {
    const std::uint64_t draw = mix(seed_ * 1000003 + ++samples_);
    Strategy result{
        {kSections[draw % std::size(kSections)], kValues[draw / 16 % std::size(kValues)]}};
    result.noise = kSampleNoise;
    result.from_right = draw >> 63 != 0;
    result.seed = draw;
    return result;
  }

  Strategy strategy(int round) const {
    const bool dives = role_ == Role::kDives;
    Strategy result{rules_[dives && options_.portfolio ? round % kRules : 0]};
    if (!dives) return result;
    const int cycle = round / kRules;
    if (cycle > 0) result.noise = kNoise;
    result.from_right = cycle % 2 == 1;
    result.seed = seed_ * 1000003 + static_cast<std::uint64_t>(round);
    return result;
  }

  Task task_;
  ExactOptions options_;
  SearchMakers makers_;
  Role role_;
  const Rules* rules_;
  std::uint64_t seed_;
  std::unique_ptr<AnySearch> search_;
  Verdict verdict_ = Verdict::kBudget;
  std::int64_t restarts_ = 0;
  std::uint64_t samples_ = 0;
};

Portfolio::Portfolio(const Task& task, const ExactOptions& options, std::uint64_t seed,
                     const SearchMakers& makers) {
  const auto add = [&](const Task& asked, Worker::Role role, const Rules* rules,
                       std::uint64_t worker_seed, std::unique_ptr<AnySearch> search = nullptr) {
    workers_.push_back(std::make_unique<Worker>(asked, options, makers, role, rules, worker_seed,
                                                std::move(search)));
  };
  if (makers.tiling != nullptr && options.tiling) {
    if (std::unique_ptr<AnySearch> tiling = makers.tiling(task)) {
      // The sweep has a round of its own before all others, since it often needs no more.
      round_ = -1;
      add(task, Worker::Role::kTiling, &kProof, seed, std::move(tiling));
    }
  }
  add(task, Worker::Role::kDives, kForward, seed);
  if (options.mirror) add(reversed(task), Worker::Role::kDives, kMirrored, seed + 1);
  add(task, Worker::Role::kProof, &kProof, seed);
}

Portfolio::~Portfolio() = default;

// Rounds of all workers, until one has an answer. The answer must not depend on the number of
// threads: so the slices of a round are fixed before it begins, workers share nothing, the answer
// is that of the first worker in their order which has one, and only the nodes up to that worker
// count. A thread that finds an answer stops only the workers behind its own.
Answer Portfolio::run(std::int64_t node_budget, int threads, Stopper& stopper) {
  const int count = static_cast<int>(workers_.size());
  Answer answer;
  answer.offsets.assign(workers_[0]->world_size(), kNoOffset);
  std::vector<std::int64_t> slices(count), nodes(count), restarts(count);
  const auto tally = [&](int last) {  // what the workers up to this one used in a round
    for (int k = 0; k <= last; ++k) {
      answer.nodes += workers_[k]->nodes() - nodes[k];
      answer.restarts += workers_[k]->restarts() - restarts[k];
    }
  };
  const std::atomic<bool> never{false};
  while (node_budget > 0 && !stopper.look()) {
    // Slices are allotted before anything runs: what a worker may use cannot depend on the others.
    int cut = count;  // the first worker whose dive has too few nodes: it will begin again
    for (int k = 0; k < count; ++k) {
      nodes[k] = workers_[k]->nodes();
      restarts[k] = workers_[k]->restarts();
      slices[k] = k < next_ ? 0 : std::min(node_budget, workers_[k]->slice(round_));
      if (k >= next_ && workers_[k]->cuts_short(round_, slices[k])) cut = std::min(cut, k);
      node_budget -= slices[k];
      MEMPLAN_ASSERT(slices[k] >= 0 && node_budget >= 0);
    }
    int winner = -1;
    // The first rounds have one worker: most problems are solved before a thread would have begun.
    const auto idle = std::count(slices.begin(), slices.end(), 0);
    if (threads <= 1 || idle >= count - 1) {
      for (int k = 0; k < count && winner < 0; ++k) {
        workers_[k]->run(round_, slices[k], &stopper, &never);
        if (workers_[k]->verdict() != Verdict::kBudget) winner = k;
      }
    } else {
      winner = run_on_threads(slices, threads, stopper);
    }
    next_ = cut < count ? cut : 0;
    if (cut == count) ++round_;
    tally(winner >= 0 ? winner : count - 1);
    for (int k = 0; k < winner; ++k) MEMPLAN_ASSERT(workers_[k]->verdict() == Verdict::kBudget);
    if (winner >= 0) {
      workers_[winner]->report(answer);
      return answer;
    }
    // The other workers get what an exhausted worker has left over.
    for (int k = 0; k < count; ++k) {
      const std::int64_t left = slices[k] - (workers_[k]->nodes() - nodes[k]);
      if (workers_[k]->exhausted()) node_budget += std::max<std::int64_t>(0, left);
    }
  }
  return answer;
}

namespace {

// Threads that are joined at the end, also where an exception ends the scope.
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { join(); }

  // Begins up to `count` threads. Where the system has no more of them, fewer do the same work.
  template <typename Work>
  void begin(int count, const Work& work) {
    for (int t = 0; t < count; ++t) {
      const std::exception_ptr lack = caught([&] { threads_.emplace_back(work); });
      if (lack && t == 0) std::rethrow_exception(lack);
      if (lack) return;
    }
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

// Each thread takes the next worker in order. The calling thread does not search: only it may call
// the stopper, since the caller's interrupt belongs to its thread, and it cancels all workers when
// the stopper ends the search. What a worker or the stopper throws ends the search as well; the
// first of them reaches the caller when all threads are done.
int Portfolio::run_on_threads(const std::vector<std::int64_t>& slices, int threads,
                              Stopper& stopper) {
  const int count = static_cast<int>(workers_.size());
  std::vector<std::atomic<bool>> cancelled(count);
  for (std::atomic<bool>& c : cancelled) c = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr thrown;
  int next = 0, open = count;
  const auto cancel_from = [&](int first) {
    for (int later = first; later < count; ++later) cancelled[later] = true;
  };
  const auto work = [&] {
    while (true) {
      int k = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (next == count) return;
        k = next++;
      }
      const std::exception_ptr fault = caught(
          [&] { workers_[k]->run(round_, cancelled[k] ? 0 : slices[k], nullptr, &cancelled[k]); });
      const std::lock_guard<std::mutex> lock(mutex);
      if (fault && !thrown) thrown = fault;
      if (fault) cancel_from(0);
      if (workers_[k]->verdict() != Verdict::kBudget) cancel_from(k + 1);
      --open;
      changed.notify_one();
    }
  };
  Pool pool;
  pool.begin(std::min(threads, count), work);
  {
    std::unique_lock<std::mutex> lock(mutex);
    while (open > 0) {
      changed.wait_for(lock, std::chrono::milliseconds(5));
      bool ends = false;
      const std::exception_ptr fault = caught([&] { ends = stopper.look(); });
      if (fault && !thrown) thrown = fault;
      if (fault || ends) cancel_from(0);
    }
  }
  pool.join();
  if (thrown) std::rethrow_exception(thrown);
  for (int k = 0; k < count; ++k) {
    if (workers_[k]->verdict() != Verdict::kBudget) return k;
  }
  return -1;
}

}  // namespace memplan::exact
