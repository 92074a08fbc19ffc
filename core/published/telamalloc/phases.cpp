#include "published/telamalloc/phases.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "memplan/sections.h"
#include "util/invariants.h"
#include "util/range_best.h"

namespace memplan {

namespace {

constexpr std::int32_t kThresholds = 20;  // from the capacity down in steps of 5 %

// Sections here are those of the plain sweep: contracted ones have no troughs.
class PhaseMaker {
 public:
  // `result` has its items.
  PhaseMaker(const Problem& problem, const Items& items, Phases result)
      : items_(items),
        sections_(sweep(problem, Contract::kNo)),
        load_(loads(sections_)),
        result_(std::move(result)) {
    first_.reserve(items.size.size());
    last_.reserve(items.size.size());
    for (const BufferIdx b : items.buffer) {
      first_.push_back(sections_.spans[sections_.span_begin[b]].first);
      last_.push_back(sections_.spans[sections_.span_begin[b + 1] - 1].last);
    }
    next_.resize(load_.size() + 1);
    end_.resize(load_.size());
  }

  Phases run(bool subproblems, bool phases) {
    measure();
    split(subproblems);
    for (Phases::Subproblem& part : result_.subproblems) {
      part.phase_begin = result_.count;
      if (phases && part.size() > 1) {
        group(part);
      } else {
        for (std::int32_t k = part.begin; k < part.end; ++k) {
          result_.phase_of[result_.items[k]] = result_.count;
        }
        ++result_.count;
      }
      MEMPLAN_ASSERT(part.begin < part.end && part.phase_begin < result_.count);
      part.phase_end = result_.count;
    }
    for (const ItemIdx i : result_.items) {
      MEMPLAN_ASSERT(result_.phase_of[i] >= 0 && result_.phase_of[i] < result_.count);
    }
    return std::move(result_);
  }

 private:
  void measure();
  void split(bool subproblems);
  void group(const Phases::Subproblem& part);
  void find_stretches(SectionIdx first, SectionIdx last, Bytes threshold);

  const Items& items_;
  const Sections sections_;
  const std::vector<Bytes> load_;
  std::vector<SectionIdx> first_;  // by item
  std::vector<SectionIdx> last_;   // by item
  // By section, for the threshold at hand: the first one from here on that reaches it, and where
  // the stretch of such sections that it is in ends.
  std::vector<SectionIdx> next_;
  std::vector<SectionIdx> end_;
  std::vector<ItemIdx> left_, later_;  // of a subproblem: in no phase yet
  Phases result_;
};

void PhaseMaker::measure() {
  const RangeBest<Bytes, std::greater<>> load(load_);
  result_.contention.reserve(items_.size.size());
  for (ItemIdx i = 0; i < items_.count(); ++i) {
    result_.contention.push_back(load.over(first_[i], last_[i]));
  }
}

// Cuts where nothing that began before is live any more.
void PhaseMaker::split(bool subproblems) {
  std::vector<ItemIdx>& items = result_.items;
  std::stable_sort(items.begin(), items.end(),
                   [this](ItemIdx a, ItemIdx b) { return first_[a] < first_[b]; });
  SectionIdx live_until = -1;
  const auto count = static_cast<std::int32_t>(items.size());
  for (std::int32_t k = 0; k < count; ++k) {
    if (k == 0 || (subproblems && first_[items[k]] > live_until)) {
      result_.subproblems.push_back({k, k, 0, 0});
    }
    result_.subproblems.back().end = k + 1;
    live_until = std::max(live_until, last_[items[k]]);
  }
  for (const Phases::Subproblem& part : result_.subproblems) {
    std::sort(items.begin() + part.begin, items.begin() + part.end);
  }
}

void PhaseMaker::group(const Phases::Subproblem& part) {
  left_.assign(result_.items.begin() + part.begin, result_.items.begin() + part.end);
  SectionIdx first = sections_.count, last = -1;
  Bytes peak = 0;
  for (const ItemIdx i : left_) {
    first = std::min(first, first_[i]);
    last = std::max(last, last_[i]);
    peak = std::max(peak, result_.contention[i]);
  }
  std::stable_sort(left_.begin(), left_.end(),
                   [this](ItemIdx a, ItemIdx b) { return first_[a] < first_[b]; });
  // Thresholds above the peak would find nothing.
  const Bytes step = std::max<Bytes>(1, items_.capacity / kThresholds);
  for (Bytes threshold = peak - peak % step; !left_.empty(); threshold -= step) {
    MEMPLAN_ASSERT(threshold > -step);  // every item's load is at least 0
    find_stretches(first, last, threshold);
    later_.clear();
    SectionIdx stretch = -1;
    for (const ItemIdx i : left_) {
      const SectionIdx at = next_[first_[i]];
      if (at > last_[i]) {
        later_.push_back(i);
        continue;
      }
      if (end_[at] != stretch) ++result_.count;
      stretch = end_[at];
      result_.phase_of[i] = result_.count - 1;
    }
    left_.swap(later_);
  }
}

void PhaseMaker::find_stretches(SectionIdx first, SectionIdx last, Bytes threshold) {
  next_[last + 1] = std::numeric_limits<SectionIdx>::max();
  for (SectionIdx s = last; s >= first; --s) {
    const bool reached = load_[s] >= threshold;
    next_[s] = reached ? s : next_[s + 1];
    if (reached) end_[s] = next_[s + 1] == s + 1 ? end_[s + 1] : s;
  }
}

}  // namespace

Phases make_phases(const Problem& problem, const Items& items, const Adjacency& adjacent,
                   bool subproblems, bool phases) {
  Phases none;
  none.phase_of.assign(items.size.size(), -1);
  for (ItemIdx i = 0; i < items.count(); ++i) {
    if (!adjacent.alone(i)) none.items.push_back(i);
  }
  if (none.items.empty()) return none;
  return PhaseMaker(problem, items, std::move(none)).run(subproblems, phases);
}

}  // namespace memplan
